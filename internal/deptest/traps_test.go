package deptest

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each TestTrap is in docs/traps.md, and each test that the page names is there.
func TestTrapsAreOnTheirPage(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "traps.md"))
	require.NoError(t, err)
	listed, defined := make(map[string]bool), make(map[string]bool)
	for _, name := range regexp.MustCompile(`\bTestTrap\d\w+`).FindAllString(string(page), -1) {
		listed[name] = true
	}
	function := regexp.MustCompile(`(?m)^func (TestTrap\d\w+)\(`)
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		for _, match := range function.FindAllSubmatch(text, -1) {
			defined[string(match[1])] = true
		}
		return err
	}))
	require.NotEmpty(t, defined)
	require.Equal(t, slices.Sorted(maps.Keys(defined)), slices.Sorted(maps.Keys(listed)))
}
