package deptest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChainIsTheShortest(t *testing.T) {
	graph := Graph{"a": {"b", "c"}, "b": {"d", "a"}, "c": {"bad"}, "d": {"bad"}}
	bad := func(path string) bool { return path == "bad" }
	require.Equal(t, []string{"a", "c", "bad"}, graph.chain("a", bad))
	require.Nil(t, Graph{"a": {"b"}, "b": {"a"}}.chain("a", bad), "a cycle ends")
}

// Load follows imports through packages and leaves _test files out.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":         "module fixture.example\n\ngo 1.26\n",
		"top/top.go":     "package top\n\nimport _ \"fixture.example/mid\"\n",
		"mid/mid.go":     "package mid\n\nimport _ \"expvar\"\n",
		"mid/in_test.go": "package mid\n\nimport _ \"testing/fstest\"\n",
		"mid/ex_test.go": "package mid_test\n\nimport _ \"testing/iotest\"\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")

	graph, err := Load(dir, "./...")
	require.NoError(t, err)
	forbid := func(path string) []Violation {
		return Rule{Subject: []string{"fixture.example/top"}, Forbidden: []string{path}}.Check(graph)
	}
	violations := forbid("expvar")
	require.Len(t, violations, 1)
	require.Equal(t, []string{"fixture.example/top", "fixture.example/mid", "expvar"}, violations[0].Chain)
	require.Len(t, forbid("net/http"), 1, "what the standard library imports counts too")
	require.Empty(t, forbid("testing/fstest"))
	require.Empty(t, forbid("testing/iotest"))

	broken := "package mid\n\nimport _ \"fixture.example/missing\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mid", "mid.go"), []byte(broken), 0o644))
	_, err = Load(dir, "./...")
	require.ErrorContains(t, err, "fixture.example/missing")
}
