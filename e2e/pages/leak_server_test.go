package pages

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/e2e/browser"
	"github.com/tenure-dev/tenure/e2e/cluster"
)

// updates are those of an hour in which something changes every five seconds, as it does where
// replicas write their cards. In the test they follow each other as fast as the page can, because
// it is updates that might leak, and not time.
var updates = flag.Int64("updates", 720, "how many updates of an open page are looked at; a page makes 3600 in an hour at most")

const (
	// warm is after how many of them it is measured first.
	warm = 150
	// faster is by how much the page's timers are quicker: it waits a second from one update to the
	// next.
	faster = 50
)

// hurried passes requests on, and in the place of the stream of events has one of its own that
// tells of a change as soon as the page has read the last one.
type hurried struct {
	pages   http.Handler
	reads   chan struct{} // has one for each read of the page
	changes atomic.Int64
	most    atomic.Int64 // how many changes are told
	ended   chan struct{}
}

func (h *hurried) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/events") {
		h.pages.ServeHTTP(w, r)
		if r.Method == http.MethodGet && !strings.Contains(r.URL.Path, "/assets/") {
			select {
			case h.reads <- struct{}{}:
			default:
			}
		}
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	tell := func(name, parts string) bool {
		_, err := fmt.Fprintf(w, "event: %s\ndata: {\"now\":%d,\"seq\":%d%s}\n\n", name, time.Now().UnixMilli(), 1000+h.changes.Load(), parts)
		return err == nil && out.Flush() == nil
	}
	if !tell("hello", "") {
		return
	}
	for {
		if h.changes.Load() < h.most.Load() {
			h.changes.Add(1)
			if !tell("change", `,"parts":["nodes","replicas","elections","jobs","orders"]`) {
				return
			}
		}
		select {
		case <-h.reads:
		case <-time.After(time.Second): // nothing was read because of it, or there is nothing to tell
		case <-h.ended:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// A page that is open for an hour leaks nothing: neither in the browser nor in the server. It is by
// itself, because goroutines are counted in the whole process.
func TestAnHourLeaksNothing(t *testing.T) {
	c := cluster.Start(t, 3, ttl)
	c.Replica("a", cluster.Replica{Jobs: jobs()[:5], Election: "poller"})
	site := c.Serve(c.Admin(c.Quorum("operator")))
	target, err := url.Parse(site.Top)
	require.NoError(t, err)
	h := &hurried{pages: httputil.NewSingleHostReverseProxy(target), reads: make(chan struct{}, 1), ended: make(chan struct{})}
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		close(h.ended)
		server.CloseClientConnections()
		server.Close()
	})

	p := browser.New(t, browser.Before(fmt.Sprintf(`{const wait = setTimeout; globalThis.setTimeout = (f, ms, ...a) => wait(f, ms / %d, ...a)}`, faster)))
	p.Goto(server.URL + cluster.Prefix + "/jobs")
	live(p)
	p.Wait(fmt.Sprintf(`document.querySelector(%s)`, browser.Quote(row("report"))))
	p.Exec(`window.stays = true`)
	followed := func(n int64) (heap float64, nodes int) {
		h.most.Store(n)
		ctx, cancel := context.WithTimeout(t.Context(), 4*browser.Patience)
		defer cancel()
		for h.changes.Load() < n && ctx.Err() == nil {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		require.Equal(t, n, h.changes.Load(), "the page follows")
		require.True(t, browser.Value[bool](p, "window.stays"), "it was not loaded anew")
		return p.Heap(), browser.Value[int](p, `document.querySelectorAll("*").length`)
	}
	began := time.Now()
	heap, nodes := followed(warm)
	goroutines := runtime.NumGoroutine()
	lateHeap, lateNodes := followed(warm + *updates)
	t.Logf("after %d updates the page's script uses %.0f KiB and has %d elements, after %d more (in %v) %.0f KiB and %d; goroutines of the server: %d, then %d",
		warm, heap/1024, nodes, *updates, time.Since(began).Round(time.Second), lateHeap/1024, lateNodes, goroutines, runtime.NumGoroutine())
	require.Less(t, lateHeap, heap+512*1024, "a page that leaks leaks something with each update")
	require.Less(t, lateNodes, nodes*5/4+50)
	require.Eventually(t, func() bool { return runtime.NumGoroutine() < goroutines+20 }, browser.Patience, 50*time.Millisecond,
		"%d, then %d", goroutines, runtime.NumGoroutine())
}
