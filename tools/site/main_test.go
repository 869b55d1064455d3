package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A site with a link that leads nowhere is not built, also where it leads somewhere in the
// repository; nor is one that nobody reaches a page of, or without the demonstration.
func TestDeadLinksAreErrors(t *testing.T) {
	for name, of := range map[string]struct{ page, says string }{
		"all is well":      {"[twice](#one-1) [up](../README.md#tenure) [code](../main.go) [web](https://example.net/#x) ![p](p.png)", ""},
		"no file":          {"[b](b.md)", "docs/A1.md: b.md: there is no such file"},
		"above":            {"[b](../../b.md)", "../../b.md: there is no such file"},
		"no heading":       {"[b](#two)", "docs/A1.md: #two: the site has no such heading"},
		"a line":           {"[code](../main.go#L1)", "../main.go#L1: the site has no such heading"},
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
				return
			}
			require.ErrorContains(t, err, of.says)
			require.NoFileExists(t, filepath.Join(out, "index.html"))
		})
	}
}
