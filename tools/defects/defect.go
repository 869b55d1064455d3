package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// defect breaks one promise.
type defect struct {
	name     string
	promise  string // that it breaks, in one sentence
	edits    []edit // more than one where a promise is kept in several places
	pkg      string // the package whose tests catch it, from the root of the repository: ./redlock
	tests    string // their names, with | between them; one that fails is enough
	workload string // with which the torture program has to find it as well; empty for none
}

// edit replaces a text that occurs exactly once in its file.
type edit struct{ file, old, new string }

//go:embed defects.txt
var table string

var (
	entry  = regexp.MustCompile(`(?m)^= (\S+): (.+)\n\? (\S+) (\S+)\n(?:! (\w+)\n)?((?:[@+-].*\n)+)`)
	change = regexp.MustCompile(`(?m)^@ (\S+)\n((?:-.*\n)+)((?:\+.*\n)*)`)
	mark   = regexp.MustCompile(`(?m)^[+-]`)
)

// defects returns all defects of defects.txt, which says how it is written.
func defects() (all []defect) {
	text := func(marked string) string { return strings.TrimSuffix(mark.ReplaceAllString(marked, ""), "\n") }
	for _, m := range entry.FindAllStringSubmatch(table, -1) {
		d := defect{name: m[1], promise: m[2], pkg: m[3], tests: m[4], workload: m[5]}
		for _, e := range change.FindAllStringSubmatch(m[6], -1) {
			d.edits = append(d.edits, edit{e[1], text(e[2]), text(e[3])})
		}
		all = append(all, d)
	}
	return all
}

// broken returns the files of the repository at root that the defect changes, as changed, by their
// paths there.
func (d *defect) broken(root string) (map[string]string, error) {
	texts := make(map[string]string)
	for _, e := range d.edits {
		text, ok := texts[e.file]
		if !ok {
			read, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.file)))
			if err != nil {
				return nil, fmt.Errorf("defects: %s: %w", d.name, err)
			}
			text = string(read)
		}
		if n := strings.Count(text, e.old); n != 1 {
			return nil, fmt.Errorf("defects: %s: %s has %d times, and must have once: %s", d.name, e.file, n, e.old)
		}
		texts[e.file] = strings.Replace(text, e.old, e.new, 1)
	}
	return texts, nil
}

// overlay writes the broken files and an overlay that names them into dir, and returns the name of
// the overlay. With it, the go command reads the broken files in place of those on disk, which stay
// as they are (go help build).
func (d *defect) overlay(root, dir string) (string, error) {
	texts, err := d.broken(root)
	if err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for file, text := range texts {
		name := filepath.Join(dir, fmt.Sprintf("%d-%s", len(replace), filepath.Base(file)))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("defects: %s: %w", d.name, err)
		}
		replace[filepath.Join(root, filepath.FromSlash(file))] = name
	}
	doc, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("defects: %s: %w", d.name, err)
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, doc, 0o600)
}
