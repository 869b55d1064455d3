package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// errRotted marks a mutant that no longer fits its file. It proves nothing until somebody has mended it.
var errRotted = errors.New("rotted")

// apply returns the text with the edit in it.
func (e Edit) apply(text string) (string, error) {
	switch n := strings.Count(text, e.Old); {
	case e.Old == "" || e.Old == e.New:
		return "", fmt.Errorf("%w: the edit of %s changes nothing", errRotted, e.File)
	case n != 1:
		return "", fmt.Errorf("%w: its text occurs %d times in %s and must occur once: %q", errRotted, n, e.File, e.Old)
	}
	return strings.Replace(text, e.Old, e.New, 1), nil
}

// broken returns the broken texts of the mutant's files in the module at root, by their names there.
func (m *Mutant) broken(root string) (map[string]string, error) {
	texts := make(map[string]string)
	for _, e := range m.edits() {
		name := filepath.Join(root, filepath.FromSlash(e.File))
		text, ok := texts[name]
		if !ok {
			b, err := os.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("mutants: %s: %w: %w", m.Name, errRotted, err)
			}
			text = string(b)
		}
		var err error
		if texts[name], err = e.apply(text); err != nil {
			return nil, fmt.Errorf("mutants: %s: %w", m.Name, err)
		}
	}
	return texts, nil
}

// overlay writes the broken files and the overlay that names them into dir, and returns the overlay's name.
func (m *Mutant) overlay(root, dir string) (string, error) {
	texts, err := m.broken(root)
	if err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for original, text := range texts {
		replace[original] = filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(original)))
		if err := os.WriteFile(replace[original], []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("mutants: %s: %w", m.Name, err)
		}
	}
	doc, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("mutants: %s: %w", m.Name, err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, doc, 0o600); err != nil {
		return "", fmt.Errorf("mutants: %s: %w", m.Name, err)
	}
	return name, nil
}
