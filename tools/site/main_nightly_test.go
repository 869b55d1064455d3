//go:build nightly

package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The site has each page of docs, in the order of README.md, no link in it is dead, and the search
// finds a page by a word that no other has.
func TestSite(t *testing.T) {
	const root = "../.."
	out := t.TempDir()
	demo := exec.Command("go", "run", "./examples/demo", "-out", filepath.Join(out, "demo"))
	demo.Dir = root
	said, err := demo.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.NoError(t, build(root, out))

	ids := make(map[string]map[string]bool) // of each file
	texts := make(map[string]string)
	require.NoError(t, filepath.WalkDir(out, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(out, file)
		ids[name] = make(map[string]bool)
		if filepath.Ext(file) == ".html" && filepath.Base(filepath.Dir(file)) != "demo" {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			texts[name] = string(text)
			for _, id := range regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(string(text), -1) {
				ids[name][id[1]] = true
			}
		}
		return nil
	}))
	links := 0
	for name, text := range texts {
		for _, l := range regexp.MustCompile(` (?:href|src)="([^"]+)"`).FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(l[1], "http") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(l[1], "#")
			to := name
			if file != "" {
				to = filepath.Join(filepath.Dir(name), file)
			}
			require.True(t, ids[to] != nil && (anchor == "" || ids[to][anchor]), "%s: %s", name, l[1])
		}
	}
	require.Greater(t, links, 500)

	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	_, list, found := strings.Cut(string(readme), "## Where to read on")
	require.True(t, found)
	var want, menu []string
	for _, l := range regexp.MustCompile(`\(docs/(\w[\w-]*)\.md\)`).FindAllStringSubmatch(list, -1) {
		want = append(want, l[1]+".html")
	}
	nav, _, _ := strings.Cut(texts["index.html"], "</nav>")
	for _, l := range regexp.MustCompile(`<li[^>]*><a href="([^"]+)">`).FindAllStringSubmatch(nav, -1) {
		menu = append(menu, l[1])
	}
	require.Equal(t, want, menu)

	// The search, as a page runs it: for each page a word that it alone has, and where it is found.
	node := exec.Command("node", "-e", `
		const fs = require("fs"), answers = {};
		(0, eval)(fs.readFileSync("index.js", "utf8") + "\n" + fs.readFileSync("search.js", "utf8"));
		const page = (s) => s.u.split("#")[0], texts = {};
		for (const s of sections) texts[page(s)] = (texts[page(s)] || "") + [s.p, s.t, s.x, ""].join(" ").toLowerCase();
		for (const [file, text] of Object.entries(texts)) {
			const word = text.match(/[a-z]{7,}/g)?.find((w) => !Object.entries(texts).some(([f, t]) => f !== file && t.includes(w)));
			if (word) answers[file] = find(sections, word).map((s) => s.u);
		}
		console.log(JSON.stringify({answers, none: find(sections, "leader nosuchword"), two: find(sections, "fencing token")[0].u}))`)
	node.Dir = out
	printed, err := node.CombinedOutput()
	require.NoError(t, err, "%s", printed)
	var is struct {
		Answers map[string][]string
		None    []any
		Two     string
	}
	require.NoError(t, json.Unmarshal(printed, &is))
	require.Empty(t, is.None)
	require.Contains(t, is.Two, "#fencing-token")
	for _, file := range menu {
		require.Contains(t, is.Answers, file)
		require.NotEmpty(t, is.Answers[file], file)
		for _, u := range is.Answers[file] {
			require.True(t, strings.HasPrefix(u, file+"#"), "%s is found in %s", file, u)
		}
	}
}
