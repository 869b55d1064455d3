package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// errRotted marks a mutant that no longer fits the code. It proves nothing until it is mended.
var errRotted = errors.New("rotted")

// apply returns the line with the edit in it. Its anchors stay.
func (e Edit) apply(line string) (string, error) {
	code, comment := line, ""
	if at := anchorComment.FindStringIndex(line); at != nil {
		code, comment = line[:at[0]], line[at[0]:]
	}
	old := e.Old
	if old == "" {
		old = strings.TrimSpace(code)
	}
	switch n := strings.Count(code, old); {
	case old == e.New:
		return "", fmt.Errorf("%w: the edit at //mutant:%s changes nothing", errRotted, e.Anchor)
	case n != 1:
		return "", fmt.Errorf("%w: the line with //mutant:%s has %d times, and must have once: %s", errRotted, e.Anchor, n, old)
	}
	return strings.Replace(code, old, e.New, 1) + comment, nil
}

// broken returns the broken texts of the mutant's files in the module at root, by their names
// there.
func (m *Mutant) broken(root string, found anchors) (map[string]string, error) {
	files := make(map[string][]string) // lines, by name
	for _, e := range m.Edits {
		at, err := found.place(e.Anchor)
		if err != nil {
			return nil, fmt.Errorf("mutants: %s: %w", m.Name, err)
		}
		name := filepath.Join(root, filepath.FromSlash(at.file))
		if files[name] == nil {
			text, err := os.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("mutants: %s: %w", m.Name, err)
			}
			files[name] = strings.Split(string(text), "\n")
		}
		lines := files[name]
		if at.line >= len(lines) {
			return nil, fmt.Errorf("mutants: %s: %w: %v has been edited", m.Name, errRotted, at)
		}
		if lines[at.line], err = e.apply(lines[at.line]); err != nil {
			return nil, fmt.Errorf("mutants: %s: %v: %w", m.Name, at, err)
		}
	}
	texts := make(map[string]string)
	for name, lines := range files {
		texts[name] = strings.Join(lines, "\n")
	}
	return texts, nil
}

// overlay writes the broken files and the overlay that names them into dir, and returns the
// overlay's name.
func (m *Mutant) overlay(root, dir string) (string, error) {
	found, err := findAnchors(root)
	if err != nil {
		return "", err
	}
	texts, err := m.broken(root, found)
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
