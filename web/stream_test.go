package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/web"
)

// patience is how long a test waits for an event that should come much sooner.
const patience = time.Minute

// onLoopback is a world on real connections, and its server.
func onLoopback(t testing.TB, opts ...web.Option) (*world, *httptest.Server) {
	w := &world{TB: t, fleet: redlocktest.Start(t, 3), log: &safeBuffer{}}
	w.q = w.quorum("page")
	w.h = w.handler(opts...)
	server := httptest.NewServer(w.h)
	t.Cleanup(server.Close)
	t.Cleanup(func() { _ = w.h.Close() }) // ends streams, for which the server waits
	return w, server
}

// event is one of a stream.
type event struct {
	name string
	data map[string]any
}

// stream is one that a test reads.
type stream struct {
	answer *http.Response
	events chan event // closed at its end
}

func follow(t *testing.T, url string) *stream {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	answer, err := http.DefaultTransport.(*http.Transport).Clone().RoundTrip(r)
	require.NoError(t, err)
	s := &stream{answer: answer, events: make(chan event, 1000)}
	var read sync.WaitGroup
	read.Go(func() {
		defer close(s.events)
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		var e event
		for lines.Scan() {
			switch line := lines.Text(); {
			case line == "" && e.name != "":
				s.events <- e
				e = event{}
			case strings.HasPrefix(line, "event: "):
				e.name = strings.TrimPrefix(line, "event: ")
			case strings.HasPrefix(line, "data: "):
				_ = json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &e.data)
			}
		}
	})
	t.Cleanup(func() {
		_ = answer.Body.Close()
		read.Wait()
	})
	return s
}

// until reads until an event; it fails if the stream ends before.
func (s *stream) until(t *testing.T, name string) event {
	t.Helper()
	end := time.After(patience)
	for {
		select {
		case e, more := <-s.events:
			require.True(t, more, "the stream has ended without %s", name)
			if e.name == name {
				return e
			}
		case <-end:
			require.Fail(t, "no event", name)
		}
	}
}

// ended waits for the end of a stream.
func (s *stream) ended(t *testing.T) (last event) {
	t.Helper()
	end := time.After(patience)
	for {
		select {
		case e, more := <-s.events:
			if !more {
				return last
			}
			last = e
		case <-end:
			require.Fail(t, "the stream does not end")
		}
	}
}

// A stream says that parts were read anew, and what happens, and ends with Close.
func TestEvents(t *testing.T) {
	t.Parallel()
	w, server := onLoopback(t)
	s := follow(t, server.URL+"/events")
	require.Equal(t, http.StatusOK, s.answer.StatusCode)
	require.Equal(t, "text/event-stream; charset=utf-8", s.answer.Header.Get("Content-Type"))
	hello := s.until(t, "hello")
	change := s.until(t, "change")
	require.NotEmpty(t, change.data["parts"])
	for _, e := range []event{hello, change} { // it was a number of milliseconds
		require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$`, e.data["now"])
		now, err := time.Parse(time.RFC3339, e.data["now"].(string))
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), now, patience)
	}
	post := func() {
		e, _ := bulletin.Run{Job: "report", By: "a", Began: 1e12, Outcome: bulletin.Failed, Error: "</script>", Token: 7}.Entry("job/report")
		_ = board.Of(w.q).Post(t.Context(), nil, e)
	}
	run := make(chan event, 1)
	go func() { run <- s.until(t, "run") }()
	require.Eventually(t, func() bool { // until the subscription is there
		post()
		select {
		case e := <-run:
			require.Equal(t, "report", e.data["job"])
			require.Equal(t, "failed", e.data["outcome"])
			why, there := e.data["why"]
			require.True(t, there && why == nil, "it is not known")
			return true
		default:
			return false
		}
	}, patience, 100*time.Millisecond)
	require.NoError(t, w.h.Close())
	last := s.ended(t)
	require.Equal(t, "bye", last.name)
	require.Equal(t, "closed", last.data["why"])
}

// A stream ends after its lifetime, so that what wraps the Handler authorizes the next one: who may
// not read any more is told nothing any more.
func TestStreamIsAuthorizedAnew(t *testing.T) {
	t.Parallel()
	w, _ := onLoopback(t, web.WithStreams(9, time.Second))
	var mu sync.Mutex
	allowed := true
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if !allowed {
			http.Error(out, "no", http.StatusForbidden)
			return
		}
		mu.Unlock()
		w.h.ServeHTTP(out, r)
		mu.Lock()
	}))
	t.Cleanup(server.Close)
	s := follow(t, server.URL+"/events")
	s.until(t, "hello")
	mu.Lock()
	allowed = false
	mu.Unlock()
	last := s.ended(t)
	require.Equal(t, "bye", last.name)
	require.Equal(t, "lifetime", last.data["why"])
	require.Equal(t, http.StatusForbidden, follow(t, server.URL+"/events").answer.StatusCode)
}

// There are so many streams at a time, and a reader who goes makes room.
func TestStreamsHaveABound(t *testing.T) {
	t.Parallel()
	_, server := onLoopback(t, web.WithStreams(2, time.Hour))
	one, two := follow(t, server.URL+"/events"), follow(t, server.URL+"/events")
	one.until(t, "hello")
	two.until(t, "hello")
	third := follow(t, server.URL+"/events")
	require.Equal(t, http.StatusServiceUnavailable, third.answer.StatusCode)
	require.Equal(t, "10", third.answer.Header.Get("Retry-After"))
	_ = one.answer.Body.Close()
	require.Eventually(t, func() bool {
		return follow(t, server.URL+"/events").answer.StatusCode == http.StatusOK
	}, patience, 100*time.Millisecond)
}

// A reader that does not read ends its stream, and keeps nothing of the others.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	w, _ := onLoopback(t, web.WithStreams(1, time.Hour))
	done := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		w.h.ServeHTTP(out, r)
		close(done)
	}))
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
		return ctx
	}
	server.Start()
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	_, err = io.WriteString(conn, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var posts sync.WaitGroup
	posts.Go(func() { // much happens
		for n := uint64(1); ctx.Err() == nil; n++ {
			var entries []bulletin.Entry
			for range 16 {
				e, _ := bulletin.Run{Job: strings.Repeat("x", 500), By: "a", Began: 1e12, Outcome: bulletin.OK, Error: strings.Repeat("y", 250), Token: n}.Entry("job/x")
				entries = append(entries, e)
				n++
			}
			_ = board.Of(w.q).Post(ctx, nil, entries...)
		}
	})
	select {
	case <-done:
	case <-ctx.Done():
		require.Fail(t, "the stream goes on although nobody reads")
	}
	cancel()
	posts.Wait()
}

// Where a middleware hides what a stream needs, there is none, and the log says why; the pages ask.
func TestStreamBehindAWriterWithoutDeadlines(t *testing.T) {
	t.Parallel()
	w, _ := onLoopback(t)
	for range 2 {
		answer := w.serve(httptest.NewRequest(http.MethodGet, "/events", nil))
		require.Equal(t, http.StatusNotImplemented, answer.Code)
	}
	require.Equal(t, 1, strings.Count(w.log.String(), "Unwrap"))
}

// clocked notes until when what is written has to be.
type clocked struct {
	*httptest.ResponseRecorder

	mu    sync.Mutex
	until time.Time // guarded by mu
}

func (c *clocked) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = t
	return nil
}

// The deadline of a write that has ended stayed: with HTTP/2 the server ended a stream on which
// nothing happened for five seconds.
func TestDeadlineEndsWithItsWrite(t *testing.T) {
	inBubble(t, 1, nil, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		answer := &clocked{ResponseRecorder: httptest.NewRecorder()}
		go w.h.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", nil))
		time.Sleep(time.Second)
		answer.mu.Lock()
		defer answer.mu.Unlock()
		require.True(t, answer.Flushed)
		require.Zero(t, answer.until)
	})
}

// Open pages share one set of reads: fifty cost the nodes what one does. One is a look that lasts.
func TestOpenPagesShareReads(t *testing.T) {
	inBubble(t, 3, []web.Option{web.WithStreams(50, time.Hour)}, func(t *testing.T, w *world) {
		cost := func(pages int) int {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for range pages {
				go w.h.ServeHTTP(&clocked{ResponseRecorder: httptest.NewRecorder()}, httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", nil))
			}
			time.Sleep(time.Minute)
			before := w.fleet.Node(0).Commands()
			time.Sleep(5 * time.Minute)
			return w.fleet.Node(0).Commands() - before
		}
		none, one, fifty := cost(0), cost(1), cost(50)
		require.Greater(t, one, none+none/10)
		require.Less(t, fifty, one+one/10)
	})
}
