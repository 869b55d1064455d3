package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// anchorComment is what ends a line that mutants break: their names, in a comment of Go or of Lua.
// The second edit of a mutant has its number behind the name: name/2.
var anchorComment = regexp.MustCompile(`[ \t]*(?://|--)mutant:([a-z0-9,/-]+)$`)

// place is a line of a file.
type place struct {
	file string // relative to the root of the module, with slashes
	line int    // from 0
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.file, p.line+1) }

// anchors are the lines that carry anchors, by anchor.
type anchors map[string][]place

// commandDir is the other module that mutants break.
const commandDir = "cmd/tenure"

// findAnchors reads the Go files of the module at root and of the command's, but for tests, and
// their Lua scripts.
func findAnchors(root string) (anchors, error) {
	found := make(anchors)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if path != root && path != filepath.Join(root, filepath.FromSlash(commandDir)) && isForeign(path) {
				return filepath.SkipDir
			}
			return nil
		case strings.HasSuffix(path, "_test.go"), !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".lua"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		found.add(filepath.ToSlash(name), string(text))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("mutants: looking for anchors: %w", err)
	}
	return found, nil
}

// isForeign reports whether the go command, too, leaves a directory out of the module.
func isForeign(dir string) bool {
	name := filepath.Base(dir)
	if name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// add notes the anchors of a file.
func (a anchors) add(file, text string) {
	if !strings.Contains(text, "mutant:") {
		return
	}
	for i, line := range strings.Split(text, "\n") {
		if match := anchorComment.FindStringSubmatch(line); match != nil {
			for _, name := range strings.Split(match[1], ",") {
				a[name] = append(a[name], place{file, i})
			}
		}
	}
}

// place returns the one line with an anchor.
func (a anchors) place(anchor string) (place, error) {
	switch at := a[anchor]; len(at) {
	case 0:
		return place{}, fmt.Errorf("%w: no line ends in //mutant:%s", errRotted, anchor)
	case 1:
		return at[0], nil
	default:
		return place{}, fmt.Errorf("%w: the anchor //mutant:%s is at %v and must be on one line", errRotted, anchor, at)
	}
}
