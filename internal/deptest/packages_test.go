package deptest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The packages that a program may import are in the table of docs/start.md, and docs/reference.md
// promises something of each; it names the other modules, too.
func TestPublicPackagesAreOnTheirPages(t *testing.T) {
	root := filepath.Join("..", "..")
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		require.NoError(t, err)
		return string(text)
	}
	names := regexp.MustCompile("`([a-z/0-9]+)`")
	listed := func(text string) (found []string) {
		for _, match := range names.FindAllStringSubmatch(text, -1) {
			found = append(found, match[1])
		}
		slices.Sort(found)
		return found
	}
	_, api, ok := strings.Cut(read("docs/reference.md"), "The API is the exported identifiers of ")
	require.True(t, ok)
	api, _, _ = strings.Cut(api, ", and the behaviour")
	_, modules, ok := strings.Cut(read("docs/reference.md"), "and the modules ")
	require.True(t, ok)
	modules, _, _ = strings.Cut(modules, ";")

	var public, others, table []string
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || file == root {
			return err
		}
		if name := entry.Name(); strings.HasPrefix(name, ".") || name == "internal" || name == "testdata" {
			return filepath.SkipDir
		}
		name, err := filepath.Rel(root, file)
		if _, is := os.Stat(filepath.Join(file, "go.mod")); is == nil {
			others = append(others, filepath.ToSlash(name))
			return filepath.SkipDir
		}
		if sources, _ := filepath.Glob(filepath.Join(file, "*.go")); len(sources) > 0 {
			public = append(public, filepath.ToSlash(name))
		}
		return err
	}))
	for _, match := range regexp.MustCompile("(?m)^\\| \\[`([a-z/]+)`\\]\\(\\.\\./([a-z/]+)\\) \\|").FindAllStringSubmatch(read("docs/start.md"), -1) {
		require.Equal(t, match[1], match[2])
		table = append(table, match[1])
	}
	slices.Sort(table)
	require.Equal(t, public, table, "docs/start.md")
	require.Equal(t, public, listed(api), "docs/reference.md")
	require.Equal(t, others, listed(modules), "docs/reference.md")
}
