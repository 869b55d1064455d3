package deptest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A file of tests has a tag if and only if its name says so: make test leaves those out that are
// long, and make test-all those that are nightly.
func TestNamesOfFilesTellTheirTags(t *testing.T) {
	found := make(map[string]int)
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && strings.HasPrefix(entry.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(file, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(file)
		for _, tag := range []string{"long", "nightly"} {
			named := strings.Contains(entry.Name(), "_"+tag+"_")
			require.Equal(t, named, strings.HasPrefix(string(text), "//go:build "+tag+"\n"), file)
			if named {
				found[tag]++
			}
		}
		return err
	}))
	require.Len(t, found, 2)
}
