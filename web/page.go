package web

import (
	"bytes"
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

// versions are of the assets, by which a browser may keep them.
var versions = make(map[string]string)

// asset answers with a file.
func asset(name, mediaType string) answer {
	text, err := files.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is built without its files
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

// iconColours are those of the icon, by the level of what the page shows.
var iconColours = map[string]string{"ok": "#0b6e63", "warn": "#8a5200", "bad": "#b81c2b"}

// page is what is drawn.
type page struct {
	Kind   string
	Title  string
	Within string // the page to which it belongs; empty for one of those that all pages lead to
	Site   string // the title of the cluster
	Root   string // the way to the start page
	Now    string // the server's clock in Unix milliseconds, or nowMark
	Parts  string // that it shows
	Status *statusDoc
	Acts   bool // it gives orders
	Doc    drawn
}

// drawn is a document that is shown to people too.
type drawn interface{ draw(p *page) markup }

// nowMark stands for the server's clock in pages that are kept: as long as that.
const nowMark = "1000000000001"

// render makes the text of a page.
func (h *Handler) render(p *page, r *http.Request) []byte {
	p.Site, p.Root, p.Acts = h.title, rootOf(r), h.authorize != nil
	if p.Now == "" {
		p.Now = strconv.FormatInt(time.Now().UnixMilli(), 10)
	}
	return p.frame(p.Doc.draw(p))
}

func writeText(w http.ResponseWriter, status int, mediaType string, text []byte) {
	w.Header().Set("Content-Type", mediaType+"; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// page answers with the page of a document. All who look at the same page at the same time get the
// same text, also if the one whose request has it made goes away.
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

// draw makes the text of the page of a document.
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
	seq    uint64 // of the snapshot
	status int
	text   []byte
}

const (
	mostPages = 64
	// keptFor is for how long a page is kept at most: ages in it are not older.
	keptFor = time.Second
	// renderMost bounds how long the document of a page is made: it may wait patience for a job.
	renderMost = 2 * patience
	// longestAddress has room for the name of a job in percent signs.
	longestAddress = 8 << 10
)

// api answers with a document as JSON.
func (d document) api(h *Handler, w http.ResponseWriter, r *http.Request) *refusal {
	s := h.feed.get(r.Context(), d.need)
	doc := d.of(h, r.Context(), s, r)
	writeJSON(w, statusOf(doc), h.status(s, d.need), doc)
	return nil
}

// writeJSON answers with JSON: one object of the fields of all.
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
