package health_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/health"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

func TestMethodsAndPaths(t *testing.T) {
	h := health.New()
	for _, test := range []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "/livez", 200},
		{http.MethodHead, "/livez", 200},
		{http.MethodGet, "/readyz", 200},
		{http.MethodHead, "/readyz?verbose", 200},
		{http.MethodPost, "/readyz", 405},
		{http.MethodOptions, "/livez", 405},
		{http.MethodDelete, "/livez", 405},
		{http.MethodGet, "/", 404},
		{http.MethodGet, "/readyz/", 404},
		{http.MethodGet, "//readyz", 404},
		{http.MethodGet, "/healthz", 404},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(test.method, "http://replica"+test.path, nil))
		require.Equal(t, test.status, w.Code, test)
		switch {
		case test.status == http.StatusMethodNotAllowed:
			require.Equal(t, "GET, HEAD", w.Header().Get("Allow"))
		case test.method == http.MethodHead:
			require.Empty(t, w.Body.String(), test)
			require.NotEqual(t, "0", w.Header().Get("Content-Length"))
		}
		if test.status == http.StatusOK {
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
			require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))
		}
	}
}

// Nothing of an error's text is sent, nor what a terminal would obey; the log has the text, once a
// change.
func TestNoSecretsInAnswers(t *testing.T) {
	var log strings.Builder
	var err error
	h := health.New(health.Check("data\x1b[31mbase\u202e", func(context.Context) error { return err }))
	h.Logger = slog.New(slog.NewTextHandler(&log, nil))
	requireReady(t, h)
	require.Empty(t, log.String())

	err = errors.New("postgres://user:hunter2@db: refused")
	for range 3 {
		requireNotReady(t, h, "[-]data\ufffd[31mbase\ufffd failed: _OTHER")
		require.NotContains(t, probe(h, "/readyz?verbose").Body.String(), "hunter2")
	}
	require.Equal(t, 1, strings.Count(log.String(), "hunter2"), &log)
	err = nil
	requireReady(t, h)
	require.Equal(t, 1, strings.Count(log.String(), "in order again"), &log)

	err = typed("a secret, or a line\nmore")
	requireNotReady(t, h, "[-]data\ufffd[31mbase\ufffd failed: _OTHER")
}

// typed is an error with an ErrorType of its own.
type typed string

func (e typed) Error() string     { return string(e) }
func (e typed) ErrorType() string { return string(e) }

// A part that hangs costs the timeout, for all who ask, is called once meanwhile, and is back when
// it answers.
func TestPartThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		hang := make(chan struct{})
		release := sync.OnceFunc(func() { close(hang) })
		defer release()
		h := health.New(
			health.Named("stuck", part(func() error { calls.Add(1); <-hang; return nil })),
			health.Check("slow", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }),
			health.Named("quick", part(func() error { return nil })))
		start := time.Now()
		for i := range 3 {
			is := verbose(t, h, "/readyz")
			require.Equal(t, map[string]string{"stuck": "failed: deadline_exceeded", "slow": "failed: deadline_exceeded", "quick": "ok"}, is.states())
			require.Equal(t, time.Duration(i+1)*health.Timeout, time.Since(start))
		}
		requireLive(t, h)
		require.Equal(t, 3*health.Timeout, time.Since(start), "liveness asks none of them")
		require.EqualValues(t, 1, calls.Load())
		release()
		synctest.Wait()
		requireState(t, h, "stuck", "ok")
	})
}

func requireState(t *testing.T, h http.Handler, name, state string) {
	t.Helper()
	is := verbose(t, h, "/readyz")
	require.Equal(t, state, is.states()[name])
}

// A probe whose sender has gone away says nothing of the part.
func TestProbeThatIsGivenUp(t *testing.T) {
	h := health.New(health.Check("fine", func(ctx context.Context) error { return ctx.Err() }))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(gone, http.MethodGet, "/readyz", nil))
	require.Equal(t, http.StatusOK, w.Code)
}

func TestPartThatPanics(t *testing.T) {
	var none *elector.Elector
	h := handler(none, nil, part(nil), (*redlock.Quorum)(nil), (*scheduler.Scheduler)(nil))
	is := verbose(t, h, "/readyz")
	require.Equal(t, map[string]string{"elector": "failed: panic", "<nil>": "failed: panic", "part": "failed: panic",
		"quorum": "failed: closed", "scheduler": "failed: not_running"}, is.states())
	requireLive(t, h)
}

// A part that ends its goroutine has failed, each time that it is asked, and does not hang.
func TestPartThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := true
		h := handler(health.Named("ends", part(func() error {
			if ends {
				runtime.Goexit()
			}
			return nil
		})))
		start := time.Now()
		for range 2 {
			requireState(t, h, "ends", "failed: _OTHER")
		}
		require.Equal(t, start, time.Now())
		ends = false
		requireState(t, h, "ends", "ok")
	})
}

// No two parts of a Handler have the same name.
func TestNamesOfParts(t *testing.T) {
	well := part(func() error { return nil })
	h := health.New(well, well, health.Named("a", health.Named("b", well)), health.Live(health.Named("c", well)), health.Named("d", health.Live(well)),
		health.Named("e", health.Check("f", func(context.Context) error { return nil })), health.Named("part-2", well), health.Named("part", well))
	is := verbose(t, h, "/readyz")
	var names []string
	for _, p := range is.Parts {
		names = append(names, p.Name)
	}
	require.Equal(t, []string{"part", "part-2", "a", "c", "d", "e", "part-2-2", "part-3"}, names)
	is = verbose(t, h, "/livez")
	require.Equal(t, map[string]string{"c": "ok", "d": "ok"}, is.states())
}

// Only what a restart helps ends a process, and nothing while it shuts down.
func TestLive(t *testing.T) {
	var err error
	h := handler(health.Live(health.Named("poller", part(func() error { return err }))))
	for _, err = range []error{
		&redlock.QuorumError{Need: 2, Nodes: 3}, // it was never ready
		nil,
		&redlock.NodeError{Node: "a:6379", Err: &redlock.ConditionError{Condition: redlock.ConditionAnotherList}},
		redlock.ErrClosed, elector.ErrNotRunning, scheduler.ErrNotRunning,
	} {
		requireLive(t, h)
	}
	for reason, is := range map[string]error{"drain_timeout": elector.ErrDrainTimeout, "_OTHER": errors.New("stuck")} {
		err = is
		w := probe(h, "/livez")
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, "[-]poller failed: "+reason+"\nlivez check failed\n", w.Body.String())
	}
	h.Stop()
	err = elector.ErrDrainTimeout
	requireNotReady(t, h, "[-]poller failed: drain_timeout\n[-]shutting down")
}

// What other processes do to a replica counts, also after it was ready: it is refused, or it goes
// on and has found another list. One node that several servers answer for is no reason while a
// quorum is possible without it.
func TestRefusedAfterItWasReady(t *testing.T) {
	because := func(c redlock.Condition) *redlock.NodeError {
		return &redlock.NodeError{Node: "a:1", Err: &redlock.ConditionError{Condition: c}}
	}
	begins := &redlock.NodeError{Node: "a:1", Err: &redlock.ConditionError{Condition: redlock.ConditionQuarantined, Until: time.Unix(1, 0)}}
	quorum := func(shared, silent int) *redlock.QuorumError {
		e := &redlock.QuorumError{Nodes: 5, Need: 3, Succeeded: 5 - shared - silent}
		for range shared {
			e.Errs = append(e.Errs, because(redlock.ConditionSeveralServers))
		}
		for range silent {
			e.Errs = append(e.Errs, &redlock.NodeError{Node: "b:1", Err: redlock.ErrTimeout})
		}
		return e
	}
	var err error
	h := handler(health.Named("nodes", part(func() error { return err })))
	requireReady(t, h)
	for _, test := range []struct {
		err   error
		state string
	}{
		{quorum(2, 1), "degraded: no_quorum"},
		{quorum(3, 0), "failed: no_quorum"},
		{&redlock.QuorumError{Nodes: 5, Need: 3, Errs: []*redlock.NodeError{begins, begins}}, "degraded: no_quorum"},
		{&redlock.QuorumError{Nodes: 3, Need: 2, Errs: []*redlock.NodeError{because(redlock.ConditionAnotherList)}}, "failed: no_quorum"},
		{because(redlock.ConditionAnotherList), "failed: another_list"},
		{fmt.Errorf("elector: %w", because(redlock.ConditionSeveralServers)), "failed: several_servers"},
		{&redlock.ClockError{Ahead: time.Minute}, "degraded: clock_ahead"},
	} {
		err = test.err
		requireState(t, h, "nodes", test.state)
		requireLive(t, h)
	}
}
