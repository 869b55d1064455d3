package main

import (
	"bytes"
	"fmt"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	mark "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// page is a file of the site, and its content.
type page struct {
	file, to string
	title    string
	body     template.HTML
	raw      []byte // of a picture
	ids      map[string]bool
	links    []link
	sections []section
}

type link struct{ written, file, anchor string }

// section is a result of the search: the text from a heading to the next.
type section struct {
	URL   string `json:"u"`
	Page  string `json:"p"`
	Title string `json:"t"`
	Text  string `json:"x"`
}

var (
	elsewhere = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9+.-]*:`)
	markdown  = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(code{}, 1))))
)

// read makes a page of a document or a picture.
func (s *site) read(file string) (*page, error) {
	p := &page{file: file, to: target(file), ids: make(map[string]bool)}
	text, err := os.ReadFile(filepath.Join(s.root, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	if picture(file) {
		p.raw = text
		return p, nil
	}
	root := markdown.Parser().Parse(mark.NewReader(text))
	reads := false // the list of pages
	err = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			title := plain(n, text)
			named, _ := n.AttributeString("id")
			id := string(named.([]byte)) // WithAutoHeadingID names each heading, as GitHub does in plain English
			p.ids[id] = true
			if n.Level == 1 {
				p.title = title
			}
			reads = file == "README.md" && title == "Where to read on"
			p.sections = append(p.sections, section{URL: fmt.Sprintf("%s#%s", p.to, id), Page: p.title, Title: title})
		case *ast.Link:
			to, err := s.follow(p, string(n.Destination))
			if reads && strings.HasPrefix(string(n.Destination), "docs/") {
				_, numbered := n.Parent().Parent().(*ast.ListItem)
				title := plain(n, text)
				s.menu = append(s.menu, entry{strings.ToUpper(title[:1]) + title[1:], to, !numbered || n.PreviousSibling() != nil})
			}
			n.Destination = []byte(to)
			return ast.WalkContinue, err
		case *ast.Image:
			to, err := s.follow(p, string(n.Destination))
			n.Destination = []byte(to)
			return ast.WalkContinue, err
		}
		if last := len(p.sections) - 1; last >= 0 && n.Parent() == root && n.Kind() != ast.KindHeading {
			p.sections[last].Text += plain(n, text) + " "
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = markdown.Renderer().Render(&b, text, root)
	p.body = template.HTML(b.String())
	return p, err
}

// follow returns where a link of a page leads. It queues the document or picture that is there.
func (s *site) follow(p *page, written string) (string, error) {
	if elsewhere.MatchString(written) {
		return written, nil
	}
	file, anchor, _ := strings.Cut(written, "#")
	to := p.file
	if file != "" {
		to = path.Join(path.Dir(p.file), file)
	}
	if _, err := os.Stat(filepath.Join(s.root, to, "README.md")); err == nil {
		to = path.Join(to, "README.md")
	}
	if _, err := os.Stat(filepath.Join(s.root, to)); err != nil || strings.HasPrefix(to, "..") {
		return "", fmt.Errorf("%s: %s: there is no such file", p.file, written)
	}
	within := written[len(file):]
	if path.Ext(to) != ".md" && !picture(to) {
		return forge + to + within, nil
	}
	p.links = append(p.links, link{written, to, anchor})
	s.queue = append(s.queue, to)
	return target(to) + within, nil
}

// plain returns the text of a node, without marks.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the walk has no errors
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Value(source))
				if n.SoftLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		default:
			if !entering && n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(b.String())
}

// code renders blocks with their words coloured.
type code struct{}

func (code) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			block := n.(*ast.FencedCodeBlock)
			language := strings.Replace(string(block.Language(source)), "console", "sh", 1)
			_, _ = w.WriteString(highlighted(language, string(block.Lines().Value(source))))
		}
		return ast.WalkSkipChildren, nil
	})
}

// highlighted returns a text of a language as HTML with coloured words.
func highlighted(language, text string) string {
	lexer := lexers.Get(language)
	if lexer == nil {
		lexer = lexers.Fallback
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, text)
	var b bytes.Buffer
	if err != nil || html.New(html.WithClasses(true)).Format(&b, styles.Get("github"), tokens) != nil {
		return "<pre>" + template.HTMLEscapeString(text) + "</pre>"
	}
	return b.String()
}
