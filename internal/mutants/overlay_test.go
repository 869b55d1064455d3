package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEdit(t *testing.T) {
	for _, test := range []struct {
		name, text, old, new string
		want                 string // empty if it has rotted
	}{
		{"once", "a b c", "b", "d", "a d c"},
		{"removed", "a b c", " b", "", "a c"},
		{"not there", "a b c", "x", "d", ""},
		{"twice", "a b b", "b", "d", ""},
		{"the same text", "a b c", "b", "b", ""},
		{"no text", "a b c", "", "d", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Edit{"f.go", test.old, test.new}.apply(test.text)
			require.Equal(t, test.want, got)
			if test.want != "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, errRotted)
			require.ErrorContains(t, err, "f.go")
		})
	}
}

// write makes a module of files in a new directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return root
}

func TestOverlayNamesEveryBrokenFile(t *testing.T) {
	files := map[string]string{"a/x.go": "one two", "b/x.go": "three", "c.go": "four"}
	root, dir := write(t, files), t.TempDir()
	m := &Mutant{Name: "m", File: "a/x.go", Old: "one", New: "1", Also: []Edit{{"b/x.go", "three", "3"}, {"a/x.go", "two", "2"}}}
	name, err := m.overlay(root, dir)
	require.NoError(t, err)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var doc struct{ Replace map[string]string }
	require.NoError(t, json.Unmarshal(text, &doc))
	require.Len(t, doc.Replace, 2)
	for original, want := range map[string]string{"a/x.go": "1 2", "b/x.go": "3"} {
		broken, err := os.ReadFile(doc.Replace[filepath.Join(root, filepath.FromSlash(original))])
		require.NoError(t, err)
		require.Equal(t, want, string(broken))
	}
	for original, want := range files {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(original)))
		require.NoError(t, err)
		require.Equal(t, want, string(text), "a file of the module was changed")
	}
}

func TestOverlayOfARottedMutant(t *testing.T) {
	root := write(t, map[string]string{"x.go": "one", "y.go": "two"})
	for name, m := range map[string]*Mutant{
		"text":        {Name: "m", File: "x.go", Old: "two", New: "2"},
		"second text": {Name: "m", File: "x.go", Old: "one", New: "1", Also: []Edit{{"y.go", "one", "1"}}},
		"file":        {Name: "m", File: "z.go", Old: "one", New: "1"},
		"broken away": {Name: "m", File: "x.go", Old: "one", New: "1", Also: []Edit{{"x.go", "one", "2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := m.overlay(root, t.TempDir())
			require.ErrorIs(t, err, errRotted)
			require.ErrorContains(t, err, "mutants: m: ")
		})
	}
}
