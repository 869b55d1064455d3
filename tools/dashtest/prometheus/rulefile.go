package prometheus

import (
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

// FileRule is a rule as its file has it.
type FileRule struct {
	File        string            `yaml:"-"`
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	Annotations map[string]string `yaml:"annotations"`
}

// Name is what the rule records, or the alert.
func (r FileRule) Name() string { return r.Record + r.Alert }

// ReadRules reads all rules of the files that match a pattern. No rule at all is an error.
func ReadRules(pattern string) ([]FileRule, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("prometheus: the pattern of rule files: %w", err)
	}
	var all []FileRule
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("prometheus: %w", err)
		}
		var content struct {
			Groups []struct {
				Rules []FileRule `yaml:"rules"`
			} `yaml:"groups"`
		}
		if err := yaml.Unmarshal(text, &content); err != nil {
			return nil, fmt.Errorf("prometheus: %s: %w", file, err)
		}
		for _, g := range content.Groups {
			for _, r := range g.Rules {
				r.File = filepath.Base(file)
				all = append(all, r)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("prometheus: %s has no rules", pattern)
	}
	return all, nil
}
