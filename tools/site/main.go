// Site makes a static site of README.md, the pages of docs, and the documents that they link to:
//
//	make site     makes it in bin/site, with the demonstration
//
// The navigation is the list of pages in README.md. A link to a file or a heading that is not there
// is an error. A directory shows its README.md. What is no document, such as source, is on the
// forge.
package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/styles"
)

//go:embed static
var static embed.FS

var layout = template.Must(template.ParseFS(static, "static/page.html"))

// scrolls lets keys scroll code and tables that are wider than a narrow screen.
var scrolls = strings.NewReplacer(`<pre class=`, `<pre tabindex="0" class=`, "<table>", `<table tabindex="0">`)

// site is the site of the files below root.
type site struct {
	root  string
	pages map[string]*page // by file
	order []*page          // in the order in which links reach them, from README.md
	queue []string         // files that have a link and may be unread
	menu  []entry
}

// entry is a page of the navigation. Beside is set unless an item of the numbered list begins with
// it.
type entry struct {
	Title, File string
	Beside      bool
}

// forge shows the files of the repository.
const forge = "https://github.com/tenure-dev/tenure/blob/main/"

// target returns the name of a document or a picture on the site.
func target(file string) string {
	switch {
	case file == "README.md":
		return "index.html"
	case picture(file):
		return path.Base(file)
	}
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(file, "docs/"), ".md"), "/", "-") + ".html"
}

func picture(file string) bool { return path.Ext(file) == ".png" || path.Ext(file) == ".svg" }

func main() {
	out := flag.String("out", "bin/site", "`directory` of the site; it has the demonstration in demo")
	flag.Parse()
	if err := build(".", *out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(*out, "has the site: any server will do, and so does a browser without one, but for the demonstration")
}

// build makes the site of the repository at root.
func build(root, out string) error {
	s, err := open(root)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(out, "demo", "index.html")); err != nil {
		return fmt.Errorf("the demonstration is missing, make site makes it: %w", err)
	}
	return s.write(out)
}

// open reads README.md, and all files that links reach from there. A link that leads nowhere is an
// error, and so is a page of docs that no link reaches.
func open(root string) (*site, error) {
	s := &site{root: root, pages: make(map[string]*page), queue: []string{"README.md"}}
	for len(s.queue) > 0 {
		file := s.queue[0]
		s.queue = s.queue[1:]
		if s.pages[file] == nil {
			p, err := s.read(file)
			if err != nil {
				return nil, err
			}
			s.pages[file], s.order = p, append(s.order, p)
		}
	}
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	for _, file := range docs {
		if s.pages["docs/"+filepath.Base(file)] == nil {
			err = errors.Join(err, fmt.Errorf("no page of the site has a link to %s", file))
		}
	}
	for _, p := range s.order {
		for _, l := range p.links {
			if to := s.pages[l.file]; l.anchor != "" && !to.ids[l.anchor] {
				err = errors.Join(err, fmt.Errorf("%s: %s: the site has no such heading", p.file, l.written))
			}
		}
	}
	return s, err
}

func (s *site) write(out string) error {
	files := make(map[string][]byte)
	var index []section
	for _, p := range s.order {
		if p.raw != nil {
			files[p.to] = p.raw
			continue
		}
		index = append(index, p.sections...)
		view := map[string]any{"Path": p.to, "Title": p.title, "Body": template.HTML(scrolls.Replace(string(p.body))), "Menu": s.menu}
		var b bytes.Buffer
		if err := layout.Execute(&b, view); err != nil {
			return err
		}
		files[p.to] = b.Bytes()
	}
	// The index is a script, which a page that was opened from a disk may load, too.
	text, err := json.Marshal(index)
	if err != nil {
		return err
	}
	files["index.js"] = append([]byte("globalThis.sections = "), text...)
	for _, name := range []string{"site.css", "search.js"} {
		if files[name], err = static.ReadFile("static/" + name); err != nil {
			return err
		}
	}
	var colours bytes.Buffer
	for style, screen := range map[string]string{"github": "light", "github-dark": "dark"} {
		fmt.Fprintf(&colours, "@media (prefers-color-scheme: %s) {\n", screen)
		if err := html.New(html.WithClasses(true)).WriteCSS(&colours, styles.Get(style)); err != nil {
			return err
		}
		colours.WriteString("}\n")
	}
	files["site.css"] = append(colours.Bytes(), files["site.css"]...)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(out, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
