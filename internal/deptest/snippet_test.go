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

var snippet = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")

// flat are the lines without indentation, and without empty ones.
func flat(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	return "\n" + strings.Join(lines, "\n") + "\n"
}

// Go on a page is code of the repository, which is compiled: line by line, at any depth.
func TestSnippetsAreCompiled(t *testing.T) {
	root := filepath.Join("..", "..")
	var sources []string
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case filepath.Ext(file) != ".go":
			return nil
		}
		text, err := os.ReadFile(file)
		sources = append(sources, flat(string(text)))
		return err
	}))
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	shown := 0
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		found := snippet.FindAllStringSubmatch(string(text), -1)
		shown += len(found)
		for _, s := range found {
			code := flat(s[1])
			require.True(t, slices.ContainsFunc(sources, func(source string) bool { return strings.Contains(source, code) }),
				"%s: no Go file of the repository has this; shown_test.go is for that:\n%s", page, s[1])
		}
	}
	require.Greater(t, shown, 20)
}
