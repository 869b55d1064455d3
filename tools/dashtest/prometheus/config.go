package prometheus

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Job is the scrape job whose targets are the replicas.
const Job = "tenure"

// Adaptation is what is different where the repository's configuration runs here.
type Adaptation struct {
	Directory string        // of the configuration; relative names of rule files begin there
	Targets   string        // the file of file_sd_configs that replaces the replicas
	Every     time.Duration // of scrapes and of rules
}

// Adapt returns the configuration with a's changes, and with no other job than that of the
// replicas.
func (a Adaptation) Adapt(text []byte) ([]byte, error) {
	var config map[string]any
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("prometheus: the configuration: %w", err)
	}
	global, ok := config["global"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("prometheus: the configuration has no global section")
	}
	every := fmt.Sprintf("%dms", a.Every.Milliseconds())
	global["scrape_interval"], global["evaluation_interval"] = every, every
	delete(global, "scrape_timeout")
	delete(config, "alerting")

	files, _ := config["rule_files"].([]any)
	if len(files) == 0 {
		return nil, fmt.Errorf("prometheus: the configuration has no rule_files")
	}
	for i, f := range files {
		files[i] = a.resolve(fmt.Sprint(f))
	}
	job, err := a.job(config)
	if err != nil {
		return nil, err
	}
	config["scrape_configs"] = []any{job}
	adapted, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("prometheus: the adapted configuration: %w", err)
	}
	return adapted, nil
}

// resolve finds a rule file beside the configuration: in a container the same files are under
// another directory.
func (a Adaptation) resolve(file string) string {
	if !filepath.IsAbs(file) {
		return filepath.Join(a.Directory, file)
	}
	parts := strings.Split(filepath.ToSlash(file), "/")
	for i := range parts {
		candidate := filepath.Join(a.Directory, filepath.Join(parts[i:]...))
		if found, err := filepath.Glob(candidate); err == nil && len(found) > 0 {
			return candidate
		}
	}
	return file
}

// job returns the scrape job of the replicas with their targets replaced.
func (a Adaptation) job(config map[string]any) (map[string]any, error) {
	jobs, _ := config["scrape_configs"].([]any)
	for _, j := range jobs {
		job, ok := j.(map[string]any)
		if !ok || job["job_name"] != Job {
			continue
		}
		for key := range job {
			if key == "static_configs" || strings.HasSuffix(key, "_sd_configs") {
				delete(job, key)
			}
		}
		delete(job, "scrape_interval")
		delete(job, "scrape_timeout")
		job["file_sd_configs"] = []any{map[string]any{"files": []string{a.Targets}, "refresh_interval": "1s"}}
		return job, nil
	}
	return nil, fmt.Errorf("prometheus: the configuration has no scrape job %q", Job)
}
