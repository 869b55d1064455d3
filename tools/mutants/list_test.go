package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// repository returns the root of this repository.
func repository(t *testing.T) string {
	t.Helper()
	root, err := repositoryRoot(".")
	require.NoError(t, err)
	return root
}

// all returns the mutants of this module.
func all(t *testing.T) []Mutant {
	t.Helper()
	list, err := mutants()
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list
}

// To change a line that a mutant breaks is noticed here, without a run of all mutants.
func TestEveryMutantFitsTheCode(t *testing.T) {
	root := repository(t)
	found, err := findAnchors(root)
	require.NoError(t, err)
	for _, m := range all(t) {
		_, err := m.broken(root, found)
		assert.NoError(t, err)
		for _, e := range m.Edits {
			delete(found, e.Anchor)
		}
	}
	assert.Empty(t, found, "anchors that no mutant names")
}

func TestEveryMutantIsComplete(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range all(t) {
		assert.False(t, seen[m.Name], "two mutants are called %s", m.Name)
		seen[m.Name] = true
		assert.Regexp(t, `^[A-Z].*\.$`, m.Rule, "%s: the rule is a sentence", m.Name)
	}
}

func TestEveryTestThatMutantsNameExists(t *testing.T) {
	root := repository(t)
	declared := make(map[string]map[string]bool) // by package
	for _, m := range all(t) {
		for _, c := range m.Checks {
			if declared[c.Package] == nil {
				declared[c.Package] = testsOf(t, filepath.Join(root, filepath.FromSlash(c.Package)))
			}
			for _, name := range c.Tests {
				assert.True(t, declared[c.Package][name], "%s: %s has no test %s", m.Name, c.Package, name)
			}
		}
	}
}

var declaration = regexp.MustCompile(`(?m)^func (Test\w+|Fuzz\w+)\(\w \*testing\.[TF]\)`)

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

// The model and the mutants break the same rules: every defect of the model has a mutant, under the
// same name.
func TestModelNamesADefect(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository(t), "docs", "model.md"))
	require.NoError(t, err)
	defects := defectRows(t, string(page))
	found := make(map[string]bool)
	for _, m := range all(t) {
		if m.Model != "" {
			assert.Contains(t, defects, m.Model, "%s: docs/model.md has no such defect", m.Name)
			found[m.Model] = true
		}
	}
	// docs/mutants.md says why.
	without := []string{"others are read before the run_id is known", "no gate before a restore",
		"only what is in reach is refreshed", "a node that does not vote admits", "who waits refreshes"}
	without = append(without, marksWithout...)
	for _, defect := range defects {
		assert.Equal(t, !slices.Contains(without, defect), found[defect], "the model's defect %q has no mutant", defect)
	}
}

// marksWithout are rules of marks that are no line of their own, see docs/mutants.md.
var marksWithout = []string{
	"marks are read before the quarantine is over",
	"marks are read before the run_id is known",
	"marks are restored to another process",
	"restored marks replace what is known",
	"marks of sources that do not know",
	"marks from fewer than a quorum less one",
	"a write that straddles a restart and a restore",
	"no gate before marks are restored",
	"two operators without a lease",
	"an operator reads less than a quorum",
	"an operator reads nodes that do not know",
}

// Only a mutant that has been run and caught is on the page. One that was added or renamed since is
// missing there.
func TestPageListsEveryMutant(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository(t), "docs", "mutants.md"))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), tableBegin)
	rows, _, ok := strings.Cut(rest, tableEnd)
	require.True(t, ok, "docs/mutants.md has no table")
	names := func(table string) (names []string) {
		for _, line := range strings.Split(strings.TrimSpace(table), "\n")[2:] {
			names = append(names, strings.Join(strings.Split(line, " | ")[:2], " | "))
		}
		return names
	}
	listed, shown := names(table(all(t), nil, "")), names(rows)
	for i := range min(len(listed), len(shown)) {
		require.Equal(t, listed[i], shown[i], "run it and write the page: go run ./tools/mutants -run '^name$' -markdown docs/mutants.md")
	}
	require.Len(t, shown, len(listed))
	require.NotContains(t, rows, "**", "something was not caught, or never run")
}

// defectRows are the first cells of the table under "What breaks without a rule".
func defectRows(t *testing.T, page string) []string {
	t.Helper()
	var rows []string
	for _, table := range strings.Split(page, "\n| without the rule |")[1:] {
		for _, line := range strings.Split(table, "\n")[2:] {
			if !strings.HasPrefix(line, "| ") {
				break
			}
			rows = append(rows, strings.TrimSpace(strings.Split(line, "|")[1]))
		}
	}
	require.NotEmpty(t, rows, "docs/model.md has no table of defects")
	return rows
}
