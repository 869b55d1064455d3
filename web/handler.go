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

// Handler serves the pages of a cluster. It is safe for concurrent use. Close it after use.
type Handler struct {
	*config
	feed  *feed
	pages *store[string, keptPage] // by address
	given *store[string, given]    // by the once of the form

	streamless sync.Once // logs once that streams cannot be sent
}

// New makes a Handler on a Client. The caller keeps the Client and its Quorum. New does no I/O: the
// nodes are read while pages are looked at. Orders use the options of the Client
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

// Close ends the streams of events and the reads of the nodes, and waits for the reads. It ends the
// contexts of orders that are under way, whose requests are still answered, and does not wait for
// them. Later requests are answered with 503. It always returns nil, and may be called again.
//
// http.Server.Shutdown waits for streams: have RegisterOnShutdown call Close.
func (h *Handler) Close() error {
	h.feed.end()
	return nil
}

// answer answers a request, or returns a refusal.
type answer func(h *Handler, w http.ResponseWriter, r *http.Request) *refusal

// routes are the answers by method and path.
var routes map[string]answer

func init() { // in init, because functions of the table use it
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

// ServeHTTP answers a request. The path at which the Handler is mounted must have been removed from
// the request's path (http.StripPrefix).
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
	// With no-referrer browsers would send the Origin "null" with orders.
	header.Set("Referrer-Policy", "same-origin")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	header.Set("Cache-Control", "no-store")
}

// toRoot redirects to the same path with a slash at its end, on which the links of the start page
// rely. A proxy may have removed a prefix of the path, so the redirect is relative to the last
// element.
func toRoot(w http.ResponseWriter, r *http.Request) *refusal {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	last := path[strings.LastIndex(path, "/")+1:]
	if last == "" { // the slash was there, and was removed with the prefix
		return refused(http.StatusNotFound, noPage)
	}
	w.Header().Set("Location", "./"+last+"/")
	w.WriteHeader(http.StatusTemporaryRedirect)
	return nil
}

// rootOf returns the relative path from a page to the start page. Browsers do not count an escaped
// slash.
func rootOf(r *http.Request) string {
	return "./" + strings.Repeat("../", max(strings.Count(r.URL.EscapedPath(), "/")-1, 0))
}

// isAPI reports whether a request asks for JSON.
func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }

// refusal is an HTTP error and its explanation.
type refusal struct {
	status int
	Error  string `json:"error"`
	Text   string `json:"text"`
}

func refused(status int, text string) *refusal {
	return &refusal{status, fmt.Sprintf("%d %s", status, http.StatusText(status)), text}
}

// refuse answers with a refusal, as a page or as JSON.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, no *refusal) {
	if isAPI(r) {
		writeJSON(w, no.status, no)
		return
	}
	writeText(w, no.status, "text/html", h.render(&page{Kind: "error", Title: http.StatusText(no.status), Status: &statusDoc{needs: &attention{}}, Doc: no}, r))
}

// document is the content of a page and of its JSON.
type document struct {
	name, title string // title is empty if there is no page
	need        []part
	of          func(h *Handler, ctx context.Context, s *snapshot, r *http.Request) any // a *refusal if there is none
}

// statusOf returns the HTTP status of a document.
func statusOf(doc any) int {
	if no, is := doc.(*refusal); is {
		return no.status
	}
	return http.StatusOK
}
