package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A site with a link that leads nowhere is not built, nor is one that nobody reaches a page of, or
// without the demonstration. Links to source lead to the forge.
func TestDeadLinksAreErrors(t *testing.T) {
	for name, of := range map[string]struct{ page, says string }{
		"all is well":      {"[twice](#one-1) [up](../README.md#tenure) [code](../main.go#L1) [web](https://example.net/#x) ![p](p.png)", ""},
		"no file":          {"[b](b.md)", "docs/A1.md: b.md: there is no such file"},
		"above":            {"[b](../../b.md)", "../../b.md: there is no such file"},
		"no heading":       {"[b](#two)", "docs/A1.md: #two: the site has no such heading"},
		"HTML":             {"<a id=\"x\"></a>[x](#x)", "#x: the site has no such heading"},
		"not linked":       {"", "no page of the site has a link to"},
		"no demonstration": {"", "the demonstration is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			root, out := t.TempDir(), t.TempDir()
			files := map[string]string{
				"README.md": "# Tenure\n\n## Where to read on\n\n1. [A](docs/A1.md)\n", "docs/A1.md": "# One\n\n## One\n\n" + of.page,
				"docs/p.png": "", "main.go": "package main\n",
			}
			if name == "not linked" {
				files["docs/C1.md"] = "# C\n"
			}
			for file, text := range files {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o600))
			}
			if name != "no demonstration" {
				require.NoError(t, os.MkdirAll(filepath.Join(out, "demo"), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(out, "demo", "index.html"), nil, 0o600))
			}
			err := build(root, out)
			if of.says == "" {
				require.NoError(t, err)
				text, err := os.ReadFile(filepath.Join(out, "A1.html"))
				require.NoError(t, err)
				require.Contains(t, string(text), `<a href="https://github.com/tenure-dev/tenure/blob/main/main.go#L1">code</a>`)
				return
			}
			require.ErrorContains(t, err, of.says)
			require.NoFileExists(t, filepath.Join(out, "index.html"))
		})
	}
}

// Each link of a document leads to a file and a heading, each document has a link to it, and
// sources that name a page of docs, or a heading of one, as runbooks of alerts do, name one that is
// there.
func TestDocuments(t *testing.T) {
	const root = "../.."
	s, err := open(root)
	require.NoError(t, err)
	named := regexp.MustCompile(`\bdocs/[a-z]+\.md(?:#[a-z0-9-]+)?`)
	anchors := 0
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, file)
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == ".git" || name == "bin"):
			return filepath.SkipDir
		case path.Ext(name) == ".md" && name[0] != '.':
			require.NotNil(t, s.pages[name], "no page has a link to %s", name)
		case slices.Contains([]string{".go", ".yml", ".yaml", ".json", ".sh", ".lua", ".txt"}, path.Ext(name)):
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, of := range named.FindAllString(string(text), -1) {
				page, anchor, _ := strings.Cut(of, "#")
				require.NotNil(t, s.pages[page], "%s: %s", name, of)
				require.True(t, anchor == "" || s.pages[page].ids[anchor], "%s: %s", name, of)
				anchors += min(len(anchor), 1)
			}
		}
		return nil
	}))
	require.Greater(t, anchors, 10)
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	require.Len(t, s.menu, len(docs), "README.md has each page")
}
