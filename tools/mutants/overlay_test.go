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
		name, line, old, new string
		want                 string // empty if it has rotted
	}{
		{"once", "a b c //mutant:x", "b", "d", "a d c //mutant:x"},
		{"removed", "a b c //mutant:x", "b ", "", "a c //mutant:x"},
		{"in a script", "a b c --mutant:x", "b", "d", "a d c --mutant:x"},
		{"the line", "\t\tf(x)   //mutant:x", "", "g(x)", "\t\tg(x)   //mutant:x"},
		{"the line removed", "\t\tf(x) //mutant:x", "", "", "\t\t //mutant:x"},
		{"several lines", "\tdefault: //mutant:x", "default:", "case 1:\ndefault:", "\tcase 1:\ndefault: //mutant:x"},
		{"not there", "a b c //mutant:x", "x", "d", ""},
		{"in the anchor", "a b c //mutant:x", "mutant", "d", ""},
		{"twice", "a b b //mutant:x", "b", "d", ""},
		{"the same text", "a b c //mutant:x", "b", "b", ""},
		{"the same line", "\ta b c //mutant:x", "", "a b c", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Edit{"x", test.old, test.new}.apply(test.line)
			require.Equal(t, test.want, got)
			if test.want != "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, errRotted)
			require.ErrorContains(t, err, "//mutant:x")
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
	files := map[string]string{"a/x.go": "zero\none //mutant:m\ntwo //mutant:m/3,n\n", "a/y.lua": "three --mutant:m/2", "c.go": "four //mutant:n/2\n"}
	root, dir := write(t, files), t.TempDir()
	m := &Mutant{Name: "m", Edits: []Edit{{"m", "one", "1"}, {"m/2", "three", "3"}, {"m/3", "two", "2"}}}
	name, err := m.overlay(root, dir)
	require.NoError(t, err)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var doc struct{ Replace map[string]string }
	require.NoError(t, json.Unmarshal(text, &doc))
	require.Len(t, doc.Replace, 2)
	for original, want := range map[string]string{"a/x.go": "zero\n1 //mutant:m\n2 //mutant:m/3,n\n", "a/y.lua": "3 --mutant:m/2"} {
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
	root := write(t, map[string]string{"x.go": "one //mutant:m\n//mutant:unended here\n", "y.go": "two //mutant:n,twice\n", "z.go": "//mutant:twice"})
	for name, edits := range map[string][]Edit{
		"text":        {{"m", "two", "2"}},
		"second text": {{"m", "one", "1"}, {"n", "one", "1"}},
		"anchor":      {{"gone", "one", "1"}},
		"two anchors": {{"twice", "two", "2"}},
		"not the end": {{"unended", "", "1"}},
		"broken away": {{"m", "one", "1"}, {"m", "one", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Mutant{Name: "m", Edits: edits}
			_, err := m.overlay(root, t.TempDir())
			require.ErrorIs(t, err, errRotted)
			require.ErrorContains(t, err, "mutants: m: ")
		})
	}
}

// The file may be edited after the anchors were found, while many mutants run.
func TestFileThatBecameShorter(t *testing.T) {
	root := write(t, map[string]string{"x.go": "\n\none //mutant:m\n"})
	found, err := findAnchors(root)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "x.go"), nil, 0o600))
	m := &Mutant{Name: "m", Edits: []Edit{{"m", "one", "1"}}}
	_, err = m.broken(root, found)
	require.ErrorIs(t, err, errRotted)
}

func TestAnchorsAreFoundWhereTheCodeIs(t *testing.T) {
	const text = "x //mutant:m\n"
	root := write(t, map[string]string{
		"go.mod": "", "a.go": text, "deep/er/b.go": text, "deep/script.lua": text, "aligned.go": "x    //mutant:m,n\n", "why.go": "x // why //mutant:m\n",
		"a_test.go": text, "a.md": text, "testdata/a.go": text, ".git/a.go": text, "_old/a.go": text, "bench/go.mod": "", "bench/a.go": text,
		"cmd/tenure/go.mod": "", "cmd/tenure/in/c.go": "x //mutant:c\n", "cmd/other/go.mod": "", "cmd/other/a.go": text,
		"prose.go": "// a line ends in //mutant:NAME\n", "text.go": "`--mutant:m`\n", "inside.go": "x //mutant:m y\n",
	})
	found, err := findAnchors(root)
	require.NoError(t, err)
	require.Equal(t, anchors{
		"m": {{"a.go", 0}, {"aligned.go", 0}, {"deep/er/b.go", 0}, {"deep/script.lua", 0}, {"why.go", 0}},
		"n": {{"aligned.go", 0}},
		"c": {{"cmd/tenure/in/c.go", 0}},
	}, found)
}

func TestAnchorsOfNoDirectory(t *testing.T) {
	_, err := findAnchors(filepath.Join(t.TempDir(), "gone"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
