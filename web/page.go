package web

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/internal/view"
)

//go:embed assets
var files embed.FS

// sprite has the shapes of states, which pages refer to.
//
//go:embed assets/sprite.svg
var sprite markup

// versions are hashes of the assets. Browsers may keep an asset whose address has its version.
var versions = make(map[string]string)

// asset returns an answer with a file.
func asset(name, mediaType string) answer {
	text, err := files.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // the program was built without its assets
	}
	sum := fnv.New64a()
	sum.Write(text)
	versions[name] = strconv.FormatUint(sum.Sum64(), 36)
	return func(_ *Handler, w http.ResponseWriter, r *http.Request) *refusal {
		query := r.URL.Query()
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Cache-Control", choice(query.Get("v") == versions[name], "public, max-age=31536000, immutable", "no-cache"))
		file := text
		if to := iconColours[query.Get("s")]; to != "" {
			file = bytes.Replace(text, []byte(iconColours["ok"]), []byte(to), 1)
		}
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(file))
		return nil
	}
}

// iconColours are the colours of the icon by the level of the page.
var iconColours = map[string]string{"ok": "#0b6e63", "warn": "#8a5200", "bad": "#b81c2b"}

// page is a page to be drawn.
type page struct {
	Kind   string
	Title  string
	Within string // the page above it; empty for a page of the navigation
	Site   string // title of the cluster
	Root   string // relative path to the start page
	Now    string // the server's clock in Unix milliseconds, or nowMark
	Parts  string // the parts that it shows
	Status *statusDoc
	Acts   bool // orders can be given
	Doc    drawn
}

// drawn is a document that has a page.
type drawn interface{ draw(p *page) markup }

// nowMark stands for the server's clock in kept pages. It has as many digits as the clock, so
// lengths stay the same.
const nowMark = "1000000000001"

// render draws a page as text.
func (h *Handler) render(p *page, r *http.Request) []byte {
	p.Site, p.Root, p.Acts = h.title, rootOf(r), h.authorize != nil
	p.Now = cmp.Or(p.Now, strconv.FormatInt(time.Now().UnixMilli(), 10))
	return p.frame(p.Doc.draw(p))
}

func writeText(w http.ResponseWriter, status int, mediaType string, text []byte) {
	w.Header().Set("Content-Type", mediaType+"; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// page answers with the page of a document. Simultaneous requests for the same page get the same
// text, even if the request that renders it is cancelled.
func (d document) page(h *Handler, w http.ResponseWriter, r *http.Request) *refusal {
	s := h.feed.get(r.Context(), d.need)
	page, mine := &made[keptPage]{done: make(chan struct{})}, true
	if address := r.URL.Path + "?" + r.URL.RawQuery; len(address) <= longestAddress {
		fresh := func(p *made[keptPage]) bool { return p.is.seq == s.seq && time.Since(p.began) < keptFor }
		if kept, first := h.pages.begin(address, keptPage{seq: s.seq, status: http.StatusInternalServerError}, fresh); kept != nil {
			page, mine = kept, first
		}
	}
	if mine {
		page.make(func(p *keptPage) { p.status, p.text = d.draw(h, r, s) })
	}
	<-page.done
	now := strconv.AppendInt(nil, time.Now().UnixMilli(), 10)
	writeText(w, page.is.status, "text/html", bytes.Replace(page.is.text, []byte(nowMark), now, 1))
	return nil
}

// draw renders the page of a document.
func (d document) draw(h *Handler, r *http.Request, s *snapshot) (status int, text []byte) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), renderMost)
	defer cancel()
	doc := d.of(h, ctx, s, r)
	p := &page{Kind: d.name, Title: d.title, Now: nowMark, Status: h.status(s, d.need), Parts: strings.Join(view.All(d.need, part.String), " "), Doc: doc.(drawn)}
	if of, ok := doc.(interface{ ofJob() (job, title string) }); ok {
		if job, title := of.ofJob(); job != "" {
			p.Title, p.Within = title+view.Shortened(visible(job), 60), "jobs"
		}
	}
	if status = statusOf(doc); status != http.StatusOK {
		p.Kind, p.Title = "error", http.StatusText(status)
	}
	return status, h.render(p, r)
}

// keptPage is a page that was rendered a moment ago.
type keptPage struct {
	seq    uint64 // of its snapshot
	status int
	text   []byte
}

const (
	mostPages = 64
	// keptFor bounds the time for which a page is kept, and so the error of the ages on it.
	keptFor = time.Second
	// renderMost bounds the rendering of a page, which may wait for a job for patience.
	renderMost = 2 * patience
	// longestAddress has room for the percent-encoded name of a job.
	longestAddress = 8 << 10
)

// api answers with a document as JSON.
func (d document) api(h *Handler, w http.ResponseWriter, r *http.Request) *refusal {
	s := h.feed.get(r.Context(), d.need)
	doc := d.of(h, r.Context(), s, r)
	writeJSON(w, statusOf(doc), h.status(s, d.need), doc)
	return nil
}

// writeJSON answers with one JSON object that has the fields of all docs.
func writeJSON(w http.ResponseWriter, status int, docs ...any) {
	var fields [][]byte
	for _, doc := range docs {
		text, err := view.JSON(doc)
		if err != nil || len(text) < 2 || text[0] != '{' {
			http.Error(w, `{"error":"500 Internal Server Error"}`, http.StatusInternalServerError)
			return
		}
		if len(text) > 2 {
			fields = append(fields, text[1:len(text)-1])
		}
	}
	writeText(w, status, "application/json", fmt.Appendf(nil, "{%s}\n", bytes.Join(fields, []byte(","))))
}

// apiIndex lists the documents.
func (h *Handler) apiIndex(w http.ResponseWriter, _ *http.Request) *refusal {
	var names []string
	for route := range routes {
		if name, is := strings.CutPrefix(route, "GET /api/v1/"); is && name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	writeJSON(w, http.StatusOK, struct {
		Documents []string `json:"documents"`
		Actions   bool     `json:"actions"`
	}{names, h.authorize != nil})
	return nil
}

// frame draws the whole page around its main content.
func (p *page) frame(main markup) []byte {
	asset := func(name string) markup { return m(`%sassets/%s?v=%s`, p.Root, name, versions[name]) }
	needs, level := p.Status.needs, markup("none")
	if needs.needs() > 0 || needs.known > 0 {
		level = map[string]markup{"good": "ok", "warn": "warn", "bad": "bad"}[p.Status.Level]
	}
	link := func(to, text markup, kind string, count markup) markup {
		current := when(p.Kind == kind && p.Within == "", ` aria-current="page"`) + when(p.Within == kind, ` aria-current="true"`)
		return m(`<a href="%s%s"%s>%s%s</a>`+"\n", p.Root, to, current, text, count)
	}
	count := func(n int) markup {
		return when(n > 0, `<span>%d<span class="unseen"> need someone</span></span>`, n)
	}
	q := needs.quorum
	nodes := when(q.Spare != nil && q.Votes < q.Total, `<span%s>%d/%d<span class="unseen"> vote</span></span>`, when(len(needs.nodes) == 0, ` class="warn"`), q.Votes, q.Total)
	prefix := when(needs.needs() > 0, "(%d) ", needs.needs())
	icon := asset("icon.svg") + when(level == "bad" || level == "warn", "&amp;s=%s", level)
	head := m(`<!doctype html>
<html lang="en" data-now="%s" data-root="%s">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>%s%s: %s</title>
<link rel="icon" href="%s" type="image/svg+xml">
<link rel="stylesheet" href="%s">
<script src="%s" defer></script>
</head>
`, p.Now, p.Root, prefix, visible(p.Site), visible(p.Title), icon, asset("app.css"), asset("app.js"))
	top := m(`<body data-page="%s" class="state-%s">
%s<a class="skip" href="#main">To the content</a>
<header class="top"><div>
<a class="site" href="%s">%s</a>
<nav aria-label="Pages">
%s</nav>
<span class="live"><span id="state" role="status" data-state="static"></span><span id="clock">%s UTC</span></span>
</div></header>
<div id="live" aria-live="polite" class="unseen"></div>
`, p.Kind, level, sprite, p.Root, visible(p.Site), link("", "Overview", "overview", "")+link("jobs", "Jobs", "jobs", count(len(needs.jobs)))+link("runs", "Failures", "runs", "")+
		link("elections", "Elections", "elections", count(len(needs.elections)))+link("nodes", "Nodes", "nodes", nodes)+link("orders", "Orders", "orders", ""), time.Now().UTC().Format("15:04:05"))
	foot := m(`<footer>
<p>%sTimes are in UTC; point at one for yours.
%s</p>
<noscript><p>Without script this page does not update itself: load it again.</p></noscript>
</footer>
</body>
</html>
`, p.age(), when(!p.Acts, "This page only shows: orders need <code>web.WithActions</code>, or <code>tenure web --actions</code>."))
	return []byte(head + top + m(`<main id="main" tabindex="-1" data-parts="%s">`+"\n%s%s\n</main>\n", p.Parts, p.above(), main) + foot)
}

// above draws the notice that nothing is granted, and the problems, on pages other than the
// overview.
func (p *page) above() markup {
	if p.Kind == "overview" {
		return ""
	}
	q := p.Status.needs.quorum
	return when(q.Total > 0 && q.Left() < 0, `<p id="sentence" class="card note lost">%s</p>`+"\n", p.Status.Sentence) + p.problems()
}

// problems draws the parts that are not up to date.
func (p *page) problems() markup {
	return when(len(p.Status.Problems) > 0, `<ul id="problems" class="card note bad">%s</ul>`+"\n",
		each(p.Status.Problems, "", func(d view.Problem) markup { return m(`<li data-part="%s">%s</li>`, d.Part, d.Text) }))
}

// age draws how old the data of the page is.
func (p *page) age() markup {
	return when(!p.Status.Oldest.IsZero(), "Read %s. ", ago(p.Status.Oldest))
}

// draw draws the page of a refusal.
func (d *refusal) draw(p *page) markup {
	return m(`<section><h1>%s</h1><p>%s</p><p><a href="%s">To the overview</a></p></section>`, p.Title, d.Text, p.Root)
}
