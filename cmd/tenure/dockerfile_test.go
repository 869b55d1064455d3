package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// instruction is a line of a Dockerfile.
type instruction struct {
	name string
	args []string
}

// readDockerfile reads the instructions of a Dockerfile, as far as this one uses them.
func readDockerfile(t *testing.T) (all []instruction) {
	t.Helper()
	text, err := os.ReadFile("Dockerfile")
	require.NoError(t, err)
	for l := range strings.Lines(string(text)) {
		words := strings.Fields(l)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		require.NotEqual(t, `\`, words[len(words)-1], "lines that go on are not read here")
		all = append(all, instruction{words[0], words[1:]})
	}
	return all
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Lstat(from)
	if os.IsNotExist(err) || err == nil && !info.Mode().IsRegular() {
		return // it is not committed yet, or removed
	}
	require.NoError(t, err)
	text, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	require.NoError(t, os.WriteFile(to, text, info.Mode().Perm()|0o200))
}
