package web

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
)

// Handler shows a cluster. It is safe for concurrent use. Close it when it is not used any more.
type Handler struct {
	*config
	feed  *feed
	pages *store[string, keptPage] // by their addresses
	given *store[string, given]    // by the once of their forms

	streamless sync.Once // that streams cannot be sent was logged
}

// New makes a Handler on a Client, which stays the caller's, as its Quorum does. It does no I/O:
// the nodes are read while pages are looked at. The orders that it gives are those of the Client
// (admin.WithOrderTimeout, WithLogger, WithTracer), with the actor that Authorize names.
//
// Errors are *OptionError.
func New(a *admin.Client, opts ...Option) (*Handler, error) {
	if a == nil {
		return nil, &OptionError{"New", "nil Client: make one with admin.New"}
	}
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	return &Handler{config: c, feed: newFeed(a, c.traceURL), pages: newStore[string, keptPage](mostPages), given: newStore[string, given](mostGiven)}, nil
}

// Close ends the streams of events and what reads the nodes, and waits for the latter. Orders that
// are under way come to their end, as far as their requests do. Requests that come later are
// answered with 503. It always returns nil, and may be called again.
//
// Streams keep http.Server.Shutdown waiting: have it call Close with RegisterOnShutdown.
func (h *Handler) Close() error {
	h.feed.end()
	return nil
}

// answer answers a request, or returns why it does not.
type answer func(h *Handler, w http.ResponseWriter, r *http.Request) *refusal

// routes are what can be asked for, by method and path.
var routes map[string]answer

func init() { // the functions of the table read it
	routes = map[string]answer{
		"GET /order":           (*Handler).orderPage,
		"POST /order":          (*Handler).giveOrder,
		"POST /api/v1/orders":  (*Handler).giveOrder,
		"GET /events":          (*Handler).events,
		"GET /assets/app.css":  asset("app.css", "text/css; charset=utf-8"),
		"GET /assets/app.js":   asset("app.js", "text/javascript; charset=utf-8"),
		"GET /assets/icon.svg": asset("icon.svg", "image/svg+xml"),
		"GET /api/v1/":         (*Handler).apiIndex,
	}
	for _, d := range []document{
		{"overview", "Overview", []part{partNodes, partReplicas, partElections, partJobs}, (*Handler).overviewDoc},
		{"jobs", "Jobs", []part{partReplicas, partJobs}, (*Handler).jobsDoc},
		{"job", "Job", []part{partJobs}, (*Handler).jobDoc},
		{"runs", "Failed runs", []part{partJobs}, (*Handler).runsDoc},
		{"run", "Run", []part{partJobs}, (*Handler).runDoc},
		{"elections", "Elections", []part{partReplicas, partElections}, (*Handler).electionsDoc},
		{"nodes", "Nodes", []part{partNodes, partReplicas}, (*Handler).nodesDoc},
		{"replicas", "", []part{partReplicas}, (*Handler).replicasDoc},
		{"orders", "Orders", []part{partOrders}, (*Handler).ordersDoc},
	} {
		routes["GET /api/v1/"+d.name] = d.api
		if d.title != "" {
			routes["GET /"+strings.TrimPrefix(d.name, "overview")] = d.page
		}
	}
}

// ServeHTTP answers a request for a path below the one at which the Handler is mounted, which must
// have been taken off (http.StripPrefix).
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if no := h.answer(w, r); no != nil {
		h.refuse(w, r, no)
	}
}

func (h *Handler) answer(w http.ResponseWriter, r *http.Request) *refusal {
	to := routes[strings.Replace(r.Method, http.MethodHead, http.MethodGet, 1)+" "+r.URL.Path]
	switch {
	case h.hosts != nil && !h.hosts[canonicalHost(r.Host)]:
		return refused(http.StatusMisdirectedRequest, "This page is not served under the host name that was asked for. It may be with web.WithHosts.")
	case r.URL.Path == "":
		return toRoot(w, r)
	case h.feed.down.Err() != nil:
		return refused(http.StatusServiceUnavailable, "The page was closed: the process that serves it is ending.")
	case to != nil:
		return to(h, w, r)
	case routes["GET "+r.URL.Path] == nil:
		return refused(http.StatusNotFound, noPage)
	}
	w.Header().Set("Allow", "GET, HEAD"+choice(routes["POST "+r.URL.Path] != nil, ", POST", ""))
	return refused(http.StatusMethodNotAllowed, "This page does not take "+visible(view.Shortened(r.Method, 20))+".")
}

const noPage = "There is no such page. If this address is that of the start page, the program mounts it without http.StripPrefix, or with a prefix that is another one than its own or ends in a slash."

// secure sets the headers of every answer.
func secure(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	// Without a referrer at all browsers would give orders with the Origin "null".
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	header.Set("Cache-Control", "no-store")
}

// toRoot adds the slash with which the links of the start page are right. The prefix that a proxy
// has taken off is not known here; the last element of the path is.
func toRoot(w http.ResponseWriter, r *http.Request) *refusal {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	last := path[strings.LastIndex(path, "/")+1:]
	if last == "" { // it has the slash, which was taken off with the prefix
		return refused(http.StatusNotFound, noPage)
	}
	w.Header().Set("Location", "./"+last+"/")
	w.WriteHeader(http.StatusTemporaryRedirect)
	return nil
}

// rootOf is the way from a page to the start page. A browser takes an escaped slash for none.
func rootOf(r *http.Request) string {
	return "./" + strings.Repeat("../", max(strings.Count(r.URL.EscapedPath(), "/")-1, 0))
}

// isAPI reports whether a request wants JSON.
func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }

// refusal is why something is not there, or not allowed.
type refusal struct {
	status int
	Error  string `json:"error"`
	Text   string `json:"text"`
}

func refused(status int, text string) *refusal {
	return &refusal{status, fmt.Sprintf("%d %s", status, http.StatusText(status)), text}
}

// refuse answers with a refusal.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, no *refusal) {
	if isAPI(r) {
		writeJSON(w, no.status, no)
		return
	}
	writeText(w, no.status, "text/html", h.render(&page{Kind: "error", Title: http.StatusText(no.status), Status: &statusDoc{needs: &attention{}}, Doc: no}, r))
}

// document is what a page shows, which its JSON is too.
type document struct {
	name, title string // the title is empty where there is no page
	need        []part
	of          func(h *Handler, ctx context.Context, s *snapshot, r *http.Request) any // a *refusal for what is not there
}

// statusOf is that of an answer with a document.
func statusOf(doc any) int {
	if no, is := doc.(*refusal); is {
		return no.status
	}
	return http.StatusOK
}
