package deptest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// document is a Markdown file of the repository.
type document struct {
	text    string // without blocks of code
	anchors map[string]bool
	links   []string // targets that are relative, as they are written
}

var (
	codeBlock = regexp.MustCompile("(?ms)^ *(```+|~~~+)[^\n]*\n.*?^ *(```+|~~~+) *$")
	codeSpan  = regexp.MustCompile("`+[^`]*`+")
	heading   = regexp.MustCompile(`(?m)^ {0,3}#{1,6} +(.+?)(?: +#+)? *$`)
	htmlID    = regexp.MustCompile(`<[a-z][^>]* (?:id|name)="([^"]+)"`)
	// A link or a picture, its text on several lines or with a picture of its own, and a
	// definition.
	inline     = regexp.MustCompile(`\]\(<?([^)<>\s]+)>?(?:\s+"[^"]*")?\)`)
	definition = regexp.MustCompile(`(?m)^ {0,3}\[[^\]]+\]: +<?([^<>\s]+)>?`)
	linkText   = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	elsewhere  = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:`)
)

// newDocument reads one.
func newDocument(text string) *document {
	d := &document{text: codeBlock.ReplaceAllString(text, ""), anchors: make(map[string]bool)}
	for _, match := range heading.FindAllStringSubmatch(d.text, -1) {
		anchor := anchorOf(match[1])
		name := anchor
		for n := 1; d.anchors[name]; n++ {
			name = fmt.Sprintf("%s-%d", anchor, n)
		}
		d.anchors[name] = true
	}
	prose := codeSpan.ReplaceAllString(d.text, "code")
	for _, match := range htmlID.FindAllStringSubmatch(prose, -1) {
		d.anchors[match[1]] = true
	}
	for _, form := range []*regexp.Regexp{inline, definition} {
		for _, match := range form.FindAllStringSubmatch(prose, -1) {
			if !elsewhere.MatchString(match[1]) {
				d.links = append(d.links, match[1])
			}
		}
	}
	return d
}

// anchorOf is what GitHub calls a heading: in small letters, with hyphens for spaces, and without
// marks other than hyphens and underscores. A link in it is its text.
func anchorOf(heading string) string {
	heading = linkText.ReplaceAllString(heading, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsMark(r), unicode.IsNumber(r):
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, heading)
}

// documents are all of the repository, by their paths from its top.
func documents(t *testing.T, root string) map[string]*document {
	t.Helper()
	all := make(map[string]*document)
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "bin"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(file) != ".md":
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		all[filepath.ToSlash(name)] = newDocument(string(text))
		return err
	}))
	return all
}

// deadLinks are the links of the documents that lead to no file, or to no heading. A link to a
// directory shows its README.
func deadLinks(root string, all map[string]*document) (dead []string) {
	for name, d := range all {
		for _, link := range d.links {
			file, anchor, _ := strings.Cut(link, "#")
			to := name
			if file != "" {
				to = path.Join(path.Dir(name), file)
			}
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(to)))
			target := all[to]
			if target == nil {
				target = all[path.Join(to, "README.md")]
			}
			switch {
			case err != nil || strings.HasPrefix(to, "../"):
				dead = append(dead, fmt.Sprintf("%s: %s: there is no such file", name, link))
			case anchor != "" && target != nil && !target.anchors[anchor]:
				dead = append(dead, fmt.Sprintf("%s: %s: there is no such heading", name, link))
			}
		}
	}
	slices.Sort(dead)
	return dead
}

// Each link of a document to a file of the repository leads there, and each anchor to a heading.
func TestLinksOfDocuments(t *testing.T) {
	root := filepath.Join("..", "..")
	all := documents(t, root)
	require.Greater(t, len(all), 15)
	links := 0
	for _, d := range all {
		links += len(d.links)
	}
	require.Greater(t, links, 150)
	require.Empty(t, strings.Join(deadLinks(root, all), "\n"))
}

// Each document can be found: another one has a link to it, and README.md to each page in docs.
func TestDocumentsAreLinked(t *testing.T) {
	all := documents(t, filepath.Join("..", ".."))
	linked, ofReadme := make(map[string]bool), make(map[string]bool)
	for name, d := range all {
		for _, link := range d.links {
			file, _, _ := strings.Cut(link, "#")
			to := path.Join(path.Dir(name), file)
			if all[to] == nil {
				to = path.Join(to, "README.md")
			}
			linked[to] = linked[to] || to != name
			ofReadme[to] = ofReadme[to] || name == "README.md"
		}
	}
	for name := range all {
		require.True(t, linked[name] || name == "README.md", "no other document has a link to %s", name)
		require.True(t, ofReadme[name] || !strings.HasPrefix(name, "docs/"), "README.md does not have %s", name)
	}
}

// Sources that name a page of docs, or a heading of one, as runbooks of alerts do, name one that is
// there.
func TestSourcesNamePages(t *testing.T) {
	root := filepath.Join("..", "..")
	all := documents(t, root)
	named := regexp.MustCompile(`\bdocs/[a-z]+\.md(?:#[a-z0-9-]+)?`)
	anchors := 0
	require.NoError(t, filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && file != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin"):
			return filepath.SkipDir
		case entry.IsDir() || !slices.Contains([]string{".go", ".yml", ".yaml", ".json", ".sh", ".lua", ".txt"}, filepath.Ext(file)) || entry.Name() == "documents_test.go":
			return nil
		}
		text, err := os.ReadFile(file)
		for _, name := range named.FindAllString(string(text), -1) {
			page, anchor, _ := strings.Cut(name, "#")
			if all[page] == nil || anchor != "" && !all[page].anchors[anchor] {
				t.Errorf("%s: %s: there is no such page or heading", file, name)
			}
			if anchor != "" {
				anchors++
			}
		}
		return err
	}))
	require.Greater(t, anchors, 10)
}

// A test that a document names is there. TestTrap, also with a number, means all of them. Those of
// the track record were there at its commits, see TestTrackRecord.
func TestDocumentsNameTests(t *testing.T) {
	root := filepath.Join("..", "..")
	declared, named := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`), regexp.MustCompile(`\b(?:Test|Fuzz)[A-Z]\w+`)
	there := make(map[string]bool)
	for _, text := range testFiles(t) {
		for _, match := range declared.FindAllStringSubmatch(text, -1) {
			there[match[1]] = true
		}
	}
	found := 0
	for name, d := range documents(t, root) {
		if name == "docs/track-record.md" {
			continue
		}
		for _, test := range named.FindAllString(d.text, -1) {
			found++
			if !there[test] && strings.Trim(test, "0123456789") != "TestTrap" {
				t.Errorf("%s: there is no %s", name, test)
			}
		}
	}
	require.Greater(t, found, 10)
}

// Anchors are those of GitHub, and dead links of each kind are found.
func TestDeadLinks(t *testing.T) {
	for heading, want := range map[string]string{
		"Two versions of the library": "two-versions-of-the-library", "`run` and `elect`": "run-and-elect", "What's new? (v1.2)": "whats-new-v12",
		"A node that is, or was, a replica": "a-node-that-is-or-was-a-replica", "snake_case - kept": "snake_case---kept", "The [page](web.md)": "the-page", "Größe": "größe",
	} {
		require.Equal(t, want, anchorOf(heading), heading)
	}
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "docs", "dir"), 0o755))
	for name, text := range map[string]string{
		"README.md": "# Top\n[a](docs/a.md#one) ![dead](docs/gone.png) [dir](docs/dir#below)\n\n```md\n# No heading\n[no](link.md)\n```\n" +
			"`[no](link.md)` [web](https://example.net/x#y) [mail](mailto:a@example.net) [self](#top) [code](#no-heading)\n",
		"docs/a.md":          "# One\n## One\n[twice](#one-1) [thrice](#one-2)\n[up](../README.md#top) [far\nabove](../../x.md)\n\n[defined]: b.md\n",
		"docs/dir/README.md": "# Below\n[dead](../a.md#two)\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, filepath.FromSlash(name)), []byte(text), 0o600))
	}
	require.Equal(t, []string{
		"README.md: #no-heading: there is no such heading",
		"README.md: docs/gone.png: there is no such file",
		"docs/a.md: #one-2: there is no such heading",
		"docs/a.md: ../../x.md: there is no such file",
		"docs/a.md: b.md: there is no such file",
		"docs/dir/README.md: ../a.md#two: there is no such heading",
	}, deadLinks(root, documents(t, root)))
}
