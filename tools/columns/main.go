// Command columns finds lines that are too wide to read: prose of Markdown files beyond 120
// columns, and comments of Go and Lua files beyond 100. A tab counts as 4 columns.
//
//	go run ./tools/columns       # list the lines, and fail if there are any
//	go run ./tools/columns -w    # re-flow the paragraphs that such lines are in
//
// Arguments are files and directories; without any it is the current directory. Directories that
// are hidden or called testdata are left out.
//
// These lines may be wider, because breaking them would change their meaning or is not possible:
// tables, headings, code and definitions of links in Markdown; directives, code blocks and
// expected output of examples in Go; directives and indented lines in Lua; in all of them a line
// that is a single word, such as a URL. A comment behind code on the same line is not looked at.
//
// Re-flowing changes no word. It leaves paragraphs alone in which no line is too wide.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

const (
	maxProse   = 120 // columns of a line of Markdown
	maxComment = 100 // columns of a line of a comment
	tabWidth   = 4
)

// finding is a line that is too wide.
type finding struct {
	line    int // from 1
	columns int
}

func main() {
	write := flag.Bool("w", false, "re-flow the files in place")
	flag.Parse()
	roots := flag.Args()
	if len(roots) == 0 {
		roots = []string{"."}
	}
	found, err := run(os.Stdout, roots, *write)
	if err != nil {
		fmt.Fprintln(os.Stderr, "columns:", err)
		os.Exit(2)
	}
	if found > 0 {
		fmt.Fprintf(os.Stderr, "columns: %d lines are too wide: go run ./tools/columns -w re-flows what can be broken\n", found)
		os.Exit(1)
	}
}

// run looks at all files below roots, re-flows them first if that is wanted, lists the lines that
// are too wide on out, and returns how many there are.
func run(out io.Writer, roots []string, write bool) (found int, err error) {
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() {
				hidden := strings.HasPrefix(entry.Name(), ".") && entry.Name() != "." && entry.Name() != ".."
				if path != root && (hidden || entry.Name() == "testdata") {
					return filepath.SkipDir
				}
				return nil
			}
			findings, err := visit(path, write)
			for _, f := range findings {
				fmt.Fprintf(out, "%s:%d: %d columns\n", path, f.line, f.columns)
			}
			found += len(findings)
			return err
		})
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// visit looks at one file. It knows its kind by the name.
func visit(path string, write bool) ([]finding, error) {
	var look func(text []byte) (reflowed []byte, findings []finding, err error)
	switch filepath.Ext(path) {
	case ".md":
		look = prose
	case ".go":
		look = comments
	case ".lua":
		look = luaComments
	default:
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	reflowed, findings, err := look(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if !write || bytes.Equal(text, reflowed) {
		return findings, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, reflowed, info.Mode().Perm()); err != nil {
		return nil, err
	}
	_, findings, err = look(reflowed)
	return findings, err
}

// width is how many columns a line takes.
func width(line string) int {
	return utf8.RuneCountInString(line) + (tabWidth-1)*strings.Count(line, "\t")
}

// fill puts words on lines of at most limit columns, the first after the text first and the others
// after rest. A word that is wider has a line of its own.
func fill(words []string, first, rest string, limit int) []string {
	var lines []string
	line, empty := first, true
	for _, word := range words {
		if !empty && width(line)+1+width(word) > limit {
			lines = append(lines, line)
			line, empty = rest, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	return append(lines, line)
}
