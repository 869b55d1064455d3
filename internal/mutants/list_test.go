package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// repository returns the root of this module.
func repository(t *testing.T) string {
	t.Helper()
	root, err := moduleRoot(".")
	require.NoError(t, err)
	return root
}

// Whoever changes a line that a mutant breaks learns it here, and need not wait for a run of all mutants.
func TestEveryMutantFitsItsFile(t *testing.T) {
	root := repository(t)
	for _, m := range mutants() {
		_, err := m.broken(root)
		assert.NoError(t, err)
	}
}

func TestEveryMutantIsComplete(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := make(map[string]bool)
	for _, m := range mutants() {
		assert.Regexp(t, name, m.Name)
		assert.False(t, seen[m.Name], "two mutants are called %s", m.Name)
		seen[m.Name] = true
		assert.Regexp(t, `^[A-Z].*\.$`, m.Rule, "%s: the rule is a sentence", m.Name)
		assert.NotEmpty(t, m.Checks, "%s: nothing is to catch it", m.Name)
		for _, e := range m.edits() {
			assert.NotRegexp(t, `_test\.go$`, e.File, "%s breaks a test", m.Name)
		}
	}
}

func TestEveryTestThatMutantsNameExists(t *testing.T) {
	root := repository(t)
	declared := make(map[string]map[string]bool) // by package
	for _, m := range mutants() {
		for _, c := range m.Checks {
			if declared[c.Package] == nil {
				declared[c.Package] = testsOf(t, filepath.Join(root, filepath.FromSlash(c.Package)))
			}
			assert.NotEmpty(t, c.Tests, "%s: a check of %s without a test", m.Name, c.Package)
			for _, name := range c.Tests {
				assert.True(t, declared[c.Package][name], "%s: %s has no test %s", m.Name, c.Package, name)
			}
		}
	}
}

var declaration = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// testsOf returns the names of the tests that the files of a directory declare.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	require.NoError(t, err)
	require.NotEmpty(t, files, "no tests in %s", dir)
	names := make(map[string]bool)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range declaration.FindAllSubmatch(text, -1) {
			names[string(match[1])] = true
		}
	}
	return names
}

// The model and the mutants break the same rules under the same names, or say that they do not: a defect without a mutant is
// The model and the mutants break the same rules: every defect of the model has a mutant, under the same name.
func TestModelNamesADefect(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository(t), "docs", "model.md"))
	require.NoError(t, err)
	defects := defectRows(t, string(page))
	found := make(map[string]bool)
	for _, m := range mutants() {
		if m.Model != "" {
			assert.Contains(t, defects, m.Model, "%s: docs/model.md has no such defect", m.Name)
			found[m.Model] = true
		}
	}
	for _, defect := range defects {
		assert.True(t, found[defect], "the model's defect %q has no mutant", defect)
	}
}

// The page is written by a run in which all were caught. One that has been added or renamed since is missing there.
func TestPageListsEveryMutant(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository(t), "docs", "mutants.md"))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), tableBegin)
	rows, _, ok := strings.Cut(rest, tableEnd)
	require.True(t, ok, "docs/mutants.md has no table")
	var want []*verdict
	for _, m := range mutants() {
		want = append(want, &verdict{mutant: &m})
	}
	names := func(table string) (names []string) {
		for _, line := range strings.Split(strings.TrimSpace(table), "\n")[2:] {
			names = append(names, strings.Join(strings.Split(line, " | ")[:2], " | "))
		}
		return names
	}
	listed, shown := names(table(want)), names(rows)
	for i := range min(len(listed), len(shown)) {
		require.Equal(t, listed[i], shown[i], "run go run ./internal/mutants -markdown docs/mutants.md")
	}
	require.Len(t, shown, len(listed), "run go run ./internal/mutants -markdown docs/mutants.md")
	require.NotContains(t, rows, "**", "something was not caught")
}

// defectRows are the first cells of the table under "What breaks without a rule".
func defectRows(t *testing.T, page string) []string {
	t.Helper()
	_, table, ok := strings.Cut(page, "\n| without the rule |")
	require.True(t, ok, "docs/model.md has no table of defects")
	var rows []string
	for _, line := range strings.Split(table, "\n")[2:] {
		if !strings.HasPrefix(line, "| ") {
			break
		}
		rows = append(rows, strings.TrimSpace(strings.Split(line, "|")[1]))
	}
	require.NotEmpty(t, rows)
	return rows
}
