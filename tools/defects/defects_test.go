package main

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/yuin/gopher-lua/parse"
)

// Each defect has its text once in its file, and what it makes of that compiles; the tests that are
// to catch it are there.
func TestDefectsFitTheCode(t *testing.T) {
	root, err := repository()
	require.NoError(t, err)
	code := listed(t, root)
	names, tests := make(map[string]bool), make(map[string]string)
	for _, d := range defects() {
		require.False(t, names[d.name], "%s is there twice", d.name)
		names[d.name] = true
		texts, err := d.broken(root)
		if err != nil {
			t.Error(err)
			continue
		}
		packages := make(map[string]bool)
		for file, text := range texts {
			if strings.HasSuffix(file, ".go") {
				packages[filepath.Dir(file)] = true
			} else if _, err := parse.Parse(strings.NewReader(text), file); err != nil {
				t.Errorf("%s: %v", d.name, err)
			}
		}
		for dir := range packages {
			if err := code.check(dir, texts); err != nil {
				t.Errorf("%s does not compile: %v", d.name, err)
			}
		}
		if tests[d.pkg] == "" {
			files, err := filepath.Glob(filepath.Join(root, d.pkg, "*_test.go"))
			require.NoError(t, err)
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				tests[d.pkg] += string(text)
			}
		}
		for name := range strings.SplitSeq(d.tests, "|") {
			if !regexp.MustCompile(`(?m)^func ` + name + `\(`).MatchString(tests[d.pkg]) {
				t.Errorf("%s: %s has no %s", d.name, d.pkg, name)
			}
		}
	}
	require.LessOrEqual(t, len(names), 120)
	require.NotRegexp(t, `(?m)^[^#\n]`, entry.ReplaceAllString(table, ""), "it is no part of an entry")
	require.NotRegexp(t, `(?m)^[@+-]`, change.ReplaceAllString(table, ""), "it is no part of an edit")
}

// code is what the go command knows of packages: the files of those that are broken, and for all
// that they import what the compiler has exported.
type code struct {
	root     string
	files    map[string][]string // by directory
	exported map[string]string   // by import path
	set      *token.FileSet
	imports  types.Importer
}

// listed asks the go command, which compiles what it has not compiled before.
func listed(t *testing.T, root string) *code {
	t.Helper()
	c := &code{root: root, files: make(map[string][]string), exported: make(map[string]string), set: token.NewFileSet()}
	args := []string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles"}
	for _, d := range defects() {
		for _, e := range d.edits {
			args = append(args, "./"+filepath.ToSlash(filepath.Dir(strings.Replace(e.file, "/wire/lib/", "/wire/", 1))))
		}
	}
	out, err := (&runner{root: root}).command(t.Context(), "", "go", args...).Output()
	require.NoError(t, err)
	for in := json.NewDecoder(bytes.NewReader(out)); in.More(); {
		var p struct {
			Dir, ImportPath, Export string
			GoFiles                 []string
		}
		require.NoError(t, in.Decode(&p))
		c.exported[p.ImportPath] = p.Export
		if dir, err := filepath.Rel(root, p.Dir); err == nil {
			c.files[dir] = p.GoFiles
		}
	}
	c.imports = importer.ForCompiler(c.set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(c.exported[path]) })
	return c
}

// check compiles the package in a directory with texts in place of files.
func (c *code) check(dir string, texts map[string]string) error {
	var files []*ast.File
	for _, name := range c.files[dir] {
		name = filepath.Join(dir, name)
		var text any
		if broken, ok := texts[filepath.ToSlash(name)]; ok {
			text = broken
		}
		file, err := parser.ParseFile(c.set, filepath.Join(c.root, name), text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	_, err := (&types.Config{Importer: c.imports}).Check(dir, c.set, files, nil)
	return err
}

// The first violation is the one that is seen first, and how long that took is told.
func TestFindingOfTheTortureProgram(t *testing.T) {
	const out = "     3  runs\nVIOLATION after 9.4s: overlap: key a: two\nVIOLATION after 11.0s: history: x\nFAIL: 2 violations\n"
	require.Equal(t, "after 9.4s: overlap", finding.FindStringSubmatch(out)[1])
	require.Nil(t, finding.FindStringSubmatch("PASS: no violation"))
}
