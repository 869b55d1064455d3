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
	feed    *feed
	details *details
	desk    *desk
	pages   *store[string, keptPage] // by their addresses

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
	h := &Handler{config: c, feed: newFeed(a, c.traceURL), pages: newStore[string, keptPage](mostPages)}
	h.details = &details{h.feed, newStore[detailOf, detail](mostDetails)}
	h.desk = &desk{c.logger, newStore[string, given](mostGiven)}
	return h, nil
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

// route is what answers a path.
type route struct {
	get, post func(h *Handler, w http.ResponseWriter, r *http.Request)
}

var routes map[string]route

func init() { // the functions of the table read it
	routes = map[string]route{
		"/order":           {get: (*Handler).orderPage, post: (*Handler).giveOrder},
		"/events":          {get: (*Handler).events},
		"/assets/app.css":  {get: asset("app.css", "text/css; charset=utf-8")},
		"/assets/app.js":   {get: asset("app.js", "text/javascript; charset=utf-8")},
		"/assets/icon.svg": {get: asset("icon.svg", "image/svg+xml")},
		"/api/v1/":         {get: (*Handler).apiIndex},
	}
	for _, d := range []struct {
		name, page string // page is empty for none
		need       []part
		of         document
	}{
		{"overview", "/", []part{partNodes, partReplicas, partElections, partJobs}, (*Handler).overviewDoc},
		{"jobs", "/jobs", []part{partReplicas, partJobs}, (*Handler).jobsDoc},
		{"job", "/job", []part{partJobs}, (*Handler).jobDoc},
		{"runs", "/runs", []part{partJobs}, (*Handler).runsDoc},
		{"run", "/run", []part{partJobs}, (*Handler).runDoc},
		{"elections", "/elections", []part{partReplicas, partElections}, (*Handler).electionsDoc},
		{"nodes", "/nodes", []part{partNodes, partReplicas}, (*Handler).nodesDoc},
		{"replicas", "", []part{partReplicas}, (*Handler).replicasDoc},
		{"orders", "/orders", []part{partOrders}, (*Handler).ordersDoc},
	} {
		routes["/api/v1/"+d.name] = route{get: apiOf(d.need, d.of)}
		if d.page != "" {
			routes[d.page] = route{get: pageOf(d.name, d.need, d.of)}
		}
	}
	routes["/api/v1/orders"] = route{get: routes["/api/v1/orders"].get, post: (*Handler).giveOrder}
}

// ServeHTTP answers a request for a path below the one at which the Handler is mounted, which must
// have been taken off (http.StripPrefix).
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	switch {
	case h.hosts != nil && !h.hosts[canonicalHost(r.Host)]:
		h.fail(w, r, http.StatusMisdirectedRequest, "This page is not served under the host name that was asked for. It may be with web.WithHosts.")
		return
	case r.URL.Path == "":
		h.toRoot(w, r)
		return
	case h.feed.down.Err() != nil:
		h.fail(w, r, http.StatusServiceUnavailable, "The page was closed: the process that serves it is ending.")
		return
	}
	to, found := routes[r.URL.Path]
	if !found {
		h.fail(w, r, http.StatusNotFound, noPage)
		return
	}
	switch {
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		to.get(h, w, r)
		return
	case r.Method == http.MethodPost && to.post != nil:
		to.post(h, w, r)
		return
	}
	allow := "GET, HEAD"
	if to.post != nil {
		allow += ", POST"
	}
	w.Header().Set("Allow", allow)
	h.fail(w, r, http.StatusMethodNotAllowed, "This page does not take "+visible(view.Shortened(r.Method, 20))+".")
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
func (h *Handler) toRoot(w http.ResponseWriter, r *http.Request) {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	last := path[strings.LastIndex(path, "/")+1:]
	if last == "" { // it has the slash, which was taken off with the prefix
		h.fail(w, r, http.StatusNotFound, noPage)
		return
	}
	w.Header().Set("Location", "./"+last+"/")
	w.WriteHeader(http.StatusTemporaryRedirect)
}

// rootOf is the way from a page to the start page. A browser takes an escaped slash for none.
func rootOf(r *http.Request) string {
	return "./" + strings.Repeat("../", max(strings.Count(r.URL.EscapedPath(), "/")-1, 0))
}

// isAPI reports whether a request wants JSON.
func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }

// fail answers that something is not there, or not allowed.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, status int, text string) {
	if isAPI(r) {
		writeJSON(w, status, newErrorDoc(status, text))
		return
	}
	writeText(w, status, h.render(&page{Kind: "error", Title: http.StatusText(status), Doc: newErrorDoc(status, text)}, r))
}

type errorDoc struct {
	Error string `json:"error"`
	Text  string `json:"text"`
}

func newErrorDoc(status int, text string) *errorDoc {
	return &errorDoc{fmt.Sprintf("%d %s", status, http.StatusText(status)), text}
}

// document makes what a page shows, which its JSON is too. status is that of the answer, also of
// what is not there.
type document func(h *Handler, ctx context.Context, s *snapshot, r *http.Request) (doc any, status int)
