package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// long is n words in one line of 10 n - 1 columns.
func long(n int) string { return strings.TrimSpace(strings.Repeat("ninechars ", n)) }

// look is prose or comments.
type look func(text []byte) ([]byte, []finding, error)

func found(t *testing.T, look look, text string) (lines []int) {
	t.Helper()
	_, findings, err := look([]byte(text))
	require.NoError(t, err)
	for _, f := range findings {
		lines = append(lines, f.line)
	}
	return lines
}

func reflowed(t *testing.T, look look, text string) string {
	t.Helper()
	out, _, err := look([]byte(text))
	require.NoError(t, err)
	words := func(text string) []string {
		return strings.Fields(strings.NewReplacer("//", "", "--", "", "> ", "").Replace(text))
	}
	require.Equal(t, words(text), words(string(out)), "no word is changed")
	again, findings, err := look(out)
	require.NoError(t, err)
	require.Empty(t, findings)
	require.Equal(t, string(out), string(again), "what was re-flowed stays as it is")
	return string(out)
}

func TestWideLinesAreFound(t *testing.T) {
	at := func(n int) string { return strings.Repeat("x", n-2) + " x" } // of n columns
	for name, tc := range map[string]struct {
		look look
		text string
		want []int
	}{
		"prose of 120 columns":          {prose, at(120) + "\n", nil},
		"prose of 121 columns":          {prose, "text\n" + at(121) + "\n", []int{2}},
		"each line of a paragraph":      {prose, at(121) + "\ntext\n" + at(130) + "\n", []int{1, 3}},
		"an item":                       {prose, "- text\n- " + at(119) + "\n", []int{2}},
		"below an item":                 {prose, "- text\n\n  " + at(119) + "\n", []int{3}},
		"a paragraph far below an item": {prose, "- text\n\n    " + at(119) + "\n", []int{3}},
		"a quotation":                   {prose, "> " + at(119) + "\n", []int{1}},
		"after code":                    {prose, "```\n" + at(121) + "\n```\n" + at(121) + "\n", []int{4}},
		"after a table":                 {prose, "| " + at(121) + " |\n\n" + at(121) + "\n", []int{3}},
		"columns, not bytes":            {prose, strings.Repeat("ä", 118) + " ä\n", nil},

		"a comment of 100 columns":   {comments, "package p\n\n// " + at(97) + "\nvar x int\n", nil},
		"a comment of 101 columns":   {comments, "package p\n\n// " + at(98) + "\nvar x int\n", []int{3}},
		"a tab is four columns":      {comments, "package p\n\nfunc f() {\n\t// " + at(94) + "\n\t// text\n}\n", []int{4}},
		"a tab and 100 columns":      {comments, "package p\n\nfunc f() {\n\t// " + at(93) + "\n\t// text\n}\n", nil},
		"an item in a comment":       {comments, "package p\n\n// Text\n//\n//   - " + at(97) + "\nvar x int\n", []int{5}},
		"a comment after the code":   {comments, "package p\n\nvar x int\n\n// " + at(98) + "\n", []int{5}},
		"a comment before directive": {comments, "package p\n\n// " + at(98) + "\n//go:noinline\nfunc f() {}\n", []int{3}},

		"a Lua comment of 100 columns": {luaComments, "-- " + at(97) + "\nreturn 1\n", nil},
		"a Lua comment of 101 columns": {luaComments, "return 1\n  -- " + at(96) + "\n-- text", []int{2}},
		"two Lua comments":             {luaComments, "-- " + at(98) + "\n--include x\n-- " + at(98) + "\n\n-- " + at(98), []int{1, 3, 5}},
	} {
		assert.Equal(t, tc.want, found(t, tc.look, tc.text), name)
	}
}

func TestLinesThatMayBeWide(t *testing.T) {
	wide := long(20)
	url := "https://example.com/" + strings.Repeat("x", 120)
	for name, text := range map[string]string{
		"table":      "| a | b |\n| --- | --- |\n| " + wide + " | x |\n",
		"heading":    "# " + wide + "\n",
		"code":       "```go\n" + wide + "\n```\n",
		"tildes":     "~~~\n" + wide + "\n```\n" + wide + "\n~~~\n",
		"indented":   "text\n\n    " + wide + "\n",
		"definition": "[x]: " + url + " 'a title'\n",
		"URL":        "text\n" + url + "\ntext\n",
		"link":       "- [text](" + url + ")\n",
		"code span":  "`" + wide + "`\n",
		"markup":     "<img src='x' " + wide + ">\n",
	} {
		assert.Empty(t, found(t, prose, text), name)
		assert.Equal(t, text, reflowed(t, prose, text), name)
	}
	for name, text := range map[string]string{
		"directive":      "//go:generate " + wide,
		"mutant":         "// text //mutant:name " + wide,
		"code":           "// Text:\n//\n//\t" + wide,
		"code of blanks": "// Text:\n//\n//     " + wide,
		"URL":            "// text\n// " + url,
		"definition":     "// [x]: " + url + " " + wide,
		"raw string":     "var s = `\n// " + wide + "\n`",
		"behind code":    "var y int // " + wide,
	} {
		text = "package p\n\n" + text + "\nvar x int\n"
		assert.Empty(t, found(t, comments, text), name)
		assert.Equal(t, text, reflowed(t, comments, text), name)
	}
	for name, text := range map[string]string{
		"include":  "--include " + wide,
		"mutant":   "  return 1 --mutant:name " + wide,
		"indented": "-- Fields:\n--\n--    1  " + wide,
		"brackets": "--[[ " + wide + " ]]",
		"code":     "return '" + wide + "'",
		"one word": "-- " + url,
	} {
		assert.Empty(t, found(t, luaComments, text+"\n"), name)
		assert.Equal(t, text, reflowed(t, luaComments, text), name)
	}
	example := "package p\n\nfunc Example() {\n\t// Output:\n\t// " + wide + "\n}\n"
	assert.Equal(t, example, reflowed(t, comments, example))
	generated := "// Code generated by x. DO NOT EDIT.\n\npackage p\n\n// " + wide + "\nvar x int\n"
	assert.Equal(t, generated, reflowed(t, comments, generated))
}

func TestReflowProse(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"paragraph", "a\n" + long(13) + "\nb\n\nshort\nlines\n", "a " + long(11) + "\n" + long(2) + " b\n\nshort\nlines\n"},
		{"items", "- " + long(12) + "\n  b\n- c\n", "- " + long(11) + "\n  ninechars b\n- c\n"},
		{"numbers", "10. " + long(12) + "\n", "10. " + long(11) + "\n    ninechars\n"},
		{"quotation", "> " + long(12) + "\n> b\n", "> " + long(11) + "\n> ninechars b\n"},
		{"code span", long(11) + " `a b c d e`\n", long(11) + "\n`a b c d e`\n"},
		{"link", long(11) + " [a b](c 'd e f')\n", long(11) + " [a\nb](c 'd e f')\n"},
		{"a dash begins no item", long(11) + " fills - " + long(1) + "\n", long(11) + " fills -\nninechars\n"},
		{"a number begins no item", long(11) + " 12345678 3. b\n", long(11) + "\n12345678 3. b\n"},
		{"breaks are kept", "a  \n" + long(12)[:115] + "\n", "a  \n" + long(12)[:115] + "\n"},
	} {
		require.Equal(t, tc.want, reflowed(t, prose, tc.text), tc.name)
	}
}

func TestReflowComments(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"paragraph", "// a\n// " + long(10) + "\n// b\n//\n// short\n// lines", "// a " + long(9) + "\n// ninechars b\n//\n// short\n// lines"},
		{"list", "// Text:\n//\n//   - " + long(10) + "\n//     b\n//   - c", "// Text:\n//\n//   - " + long(9) + "\n//     ninechars b\n//   - c"},
		{"list behind text", "// " + long(10) + "\n//  1. b\n//  2. c", "// " + long(9) + "\n// ninechars\n//  1. b\n//  2. c"},
		{"code", "// " + long(10) + "\n//\n//\t" + long(12), "// " + long(9) + "\n// ninechars\n//\n//\t" + long(12)},
		{"heading", "// # Heading\n//\n// " + long(10), "// # Heading\n//\n// " + long(9) + "\n// ninechars"},
		{"directive", "// " + long(10) + "\n//go:noinline", "// " + long(9) + "\n// ninechars\n//go:noinline"},
	} {
		head, tail := "package p\n\n", "\nfunc f() {}\n"
		require.Equal(t, head+tc.want+tail, reflowed(t, comments, head+tc.text+tail), tc.name)
	}
	lua := "return 1 -- a--b\n  -- a // b\n  -- " + long(10) + "\n--include x\n-- short\n"
	require.Equal(t, "return 1 -- a--b\n  -- a // b "+long(8)+"\n  -- ninechars ninechars\n--include x\n-- short\n", reflowed(t, luaComments, lua))
	inner := "package p\n\nfunc f() {\n\tif true {\n\t\t// " + long(10) + "\n\t}\n}\n"
	want := "package p\n\nfunc f() {\n\tif true {\n\t\t// " + long(9) + "\n\t\t// ninechars" + "\n\t}\n}\n"
	require.Equal(t, want, reflowed(t, comments, inner))
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	good, bad := long(12)+"\n", long(13)+"\n"
	files := map[string]string{
		"a.md":            bad,
		"b/c.md":          good,
		"b/d.go":          "package p\n\n// " + long(10) + "\nvar x int\n",
		"b/h.lua":         "-- " + long(10) + "\nreturn 1\n",
		"b/testdata/e.md": bad,
		".git/f.md":       bad,
		"g.txt":           bad,
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	var out strings.Builder
	n, err := run(&out, []string{dir}, false)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.Equal(t, filepath.Join(dir, "a.md")+":1: 129 columns\n"+filepath.Join(dir, "b", "d.go")+":3: 102 columns\n"+
		filepath.Join(dir, "b", "h.lua")+":1: 102 columns\n", out.String())

	n, err = run(&out, []string{dir}, true)
	require.NoError(t, err)
	require.Zero(t, n)
	for name, text := range files {
		now, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		require.NoError(t, err)
		require.Equal(t, name == "a.md" || name == "b/d.go" || name == "b/h.lua", string(now) != text, name)
	}

	require.NoError(t, os.WriteFile(filepath.Join(dir, "no.go"), []byte("pakcage"), 0o600))
	_, err = run(&out, []string{dir}, false)
	require.ErrorContains(t, err, "no.go")
	_, err = run(&out, []string{filepath.Join(dir, "missing")}, false)
	require.ErrorIs(t, err, os.ErrNotExist)
}
