// Package page is the page of the demonstration: its files, and an http.Handler that serves them
// and speaks the protocol of package demo. In a browser alone the same files speak it with a worker
// (examples/demo).
package page

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"time"

	"github.com/tenure-dev/tenure/examples/internal/demo"
)

//go:embed static
var files embed.FS

// Files are the page's: index.html, demo.css and demo.js.
func Files() fs.FS {
	sub, err := fs.Sub(files, "static")
	if err != nil {
		panic(err) // the name is no path
	}
	return sub
}

const (
	// maxOrder bounds an order's text.
	maxOrder = 4 << 10
	// maxStreams bounds how many pages are open.
	maxStreams = 64
	// writeTimeout bounds how long a page may take to read what it is sent at once.
	writeTimeout = 10 * time.Second
	// pace is the least time between two times that a page is sent messages.
	pace = 50 * time.Millisecond
	// heartbeat is how often a page is sent something.
	heartbeat = 15 * time.Second
)

// policy lets the page have its own files and talk to its own program, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler serves the page, its messages and its orders. Requests whose Host is neither localhost
// nor an IP address are refused, because the name may be one that an attacker made lead here (DNS
// rebinding), and so are orders from other origins.
func Handler(d *demo.Demo) http.Handler {
	mux := http.NewServeMux()
	static := http.FileServerFS(Files())
	mux.Handle("GET /{$}", static)
	mux.Handle("GET /demo.css", static)
	mux.Handle("GET /demo.js", static)
	mux.Handle("GET /icon.svg", static)
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, d.State()) })
	mux.HandleFunc("GET /events", events(d))
	mux.HandleFunc("POST /orders", take(d))
	return Guard(policy, http.NewCrossOriginProtection().Handler(mux))
}

// Guard adds the headers of a page with that Content-Security-Policy, and refuses requests for
// another Host than localhost or an IP address.
func Guard(policy string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-store")
		if !local(r.Host) {
			http.Error(w, "the page is at http://localhost or at an IP address, and not under another name", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// local reports whether a Host is one that nobody can make lead elsewhere.
func local(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	if len(name) > 2 && name[0] == '[' && name[len(name)-1] == ']' {
		name = name[1 : len(name)-1]
	}
	return name == "localhost" || net.ParseIP(name) != nil
}

// events sends messages until the page is closed, or the server.
func events(d *demo.Demo) http.HandlerFunc {
	streams := make(chan struct{}, maxStreams)
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case streams <- struct{}{}:
			defer func() { <-streams }()
		default:
			http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		out := http.NewResponseController(w)
		again := time.NewTimer(heartbeat)
		defer again.Stop()
		revision := uint64(0)
		for {
			messages, now, more := d.Since(revision)
			revision = now
			_ = out.SetWriteDeadline(time.Now().Add(writeTimeout))
			if len(messages) == 0 {
				if _, err := fmt.Fprint(w, ":\n\n"); err != nil {
					return
				}
			}
			for _, m := range messages {
				if _, err := fmt.Fprintf(w, "data: %s\n\n", m); err != nil {
					return
				}
			}
			if err := out.Flush(); err != nil {
				return
			}
			again.Reset(heartbeat)
			select {
			case <-more:
			case <-again.C:
			case <-r.Context().Done():
				return
			}
			select {
			case <-time.After(pace):
			case <-r.Context().Done():
				return
			}
		}
	}
}

// take takes an order.
func take(d *demo.Demo) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Content-Type") != "application/json" {
			reply(w, http.StatusUnsupportedMediaType, answer{Error: "send the order as application/json"})
			return
		}
		var o demo.Order
		in := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxOrder))
		in.DisallowUnknownFields()
		if err := in.Decode(&o); err != nil {
			reply(w, http.StatusBadRequest, answer{Error: "that is no order: " + err.Error()})
			return
		}
		switch err := d.Do(o); {
		case errors.Is(err, demo.ErrRefused):
			reply(w, http.StatusConflict, answer{Error: err.Error()})
		case err != nil:
			reply(w, http.StatusBadRequest, answer{Error: err.Error()})
		default:
			reply(w, http.StatusOK, answer{Text: "done"})
		}
	}
}

// answer is that to an order.
type answer struct {
	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"`
}

func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
