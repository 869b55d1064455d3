package health

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Timeout is how long a probe waits for the parts, which are all asked at once. It is half of what
// a probe of Kubernetes waits by default.
const Timeout = 500 * time.Millisecond

// Handler answers GET and HEAD of /livez and /readyz: 200 with "ok", or 503 with a line for each
// part that fails. With ?verbose it answers in JSON, with the parts and the nodes that do not vote.
// It answers within the [Timeout], even if a part hangs. The answers have no credentials and no
// texts of errors; these texts are logged, once a change.
//
// It does no I/O itself: its knowledge of the nodes is that of Quorum.Healthy, and as old. It knows
// that a quorum has voted only if a probe came while that was so. It is safe for concurrent use.
type Handler struct {
	// Logger gets a line when a part fails, and when it is in order again. Nil means slog.Default.
	// Set it before the first request.
	Logger *slog.Logger

	parts    []*part
	stopping atomic.Bool
}

// New makes a Handler of these parts. Without any, a replica is ready until [Handler.Stop].
func New(parts ...Part) *Handler {
	h := &Handler{}
	taken := make(map[string]bool)
	for _, of := range parts {
		p := newPart(of)
		name := p.name
		for n := 2; taken[p.name]; n++ { // the second quorum is named quorum-2
			p.name = name + "-" + strconv.Itoa(n)
		}
		taken[p.name] = true
		h.parts = append(h.parts, p)
	}
	return h
}

// Stop says that the process shuts down. From then on /readyz answers 503 and /livez 200, so that
// the supervisor does not end the process early. Call Stop first on SIGTERM.
func (h *Handler) Stop() { h.stopping.Store(true) }

// ServeHTTP answers a probe.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	check := strings.TrimPrefix(r.URL.Path, "/")
	if check != "livez" && check != "readyz" {
		http.NotFound(w, r)
		return
	}
	header := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	is := h.report(r.Context(), check)
	body, kind := []byte(is.String()), "text/plain; charset=utf-8"
	if r.URL.Query().Has("verbose") {
		body, kind = is.json(), "application/json"
	}
	header.Set("Content-Type", kind)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	status := http.StatusOK
	if !is.OK {
		status = http.StatusServiceUnavailable
	}
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = w.Write(body) // a probe that is gone asks again
	}
}

// report asks the parts that belong to the check, all at once.
func (h *Handler) report(ctx context.Context, check string) *report {
	is := &report{Check: check, OK: true, Parts: []answer{}}
	live := check == "livez"
	switch stopping := h.stopping.Load(); {
	case stopping && live:
		return is
	case stopping:
		is.OK, is.Reason = false, "shutting down"
	}
	var asked []*part
	for _, p := range h.parts {
		if p.live || !live {
			asked = append(asked, p)
		}
	}
	up, cancel := context.WithTimeout(context.WithoutCancel(ctx), Timeout)
	defer cancel()
	found := make([]finding, len(asked))
	var answers sync.WaitGroup
	for i, p := range asked {
		answers.Go(func() { found[i] = p.ask(up.Done()) })
	}
	answers.Wait()
	for i, p := range asked {
		f := found[i]
		f.Name = p.name
		h.log(p, f)
		is.Parts = append(is.Parts, f.answer)
		if !f.State.ready() && (!live || f.restarts) {
			is.OK = false
		}
	}
	return is
}

// log logs a change of a part's state. It may contain the text of the error: only people with
// access to logs read it.
func (h *Handler) log(p *part, f finding) {
	if !p.news(f.State) {
		return
	}
	logger := h.Logger
	if logger == nil {
		logger = slog.Default()
	}
	switch f.State {
	case failed:
		logger.Warn("health: a part fails", "part", p.name, "reason", f.Reason, "error", f.text)
	case fine:
		logger.Info("health: a part is in order again", "part", p.name)
	default:
		logger.Warn("health: too few nodes vote, and the replica is ready all the same",
			"part", p.name, "state", string(f.State), "error", f.text)
	}
}
