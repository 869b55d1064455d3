package redlock_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// caller is foreign code of every kind. Each kind calls the library back, the first few times that
// it is called itself.
type caller struct {
	slog.Handler

	q    atomic.Pointer[redlock.Quorum]
	mu   sync.Mutex
	came map[string]int // guarded by mu; calls that have come back, of each kind
	went map[string]int // guarded by mu
}

const callsBack = 2 // of each kind

func newCaller() *caller {
	return &caller{Handler: slog.DiscardHandler, came: make(map[string]int), went: make(map[string]int)}
}

// back calls the library.
func (c *caller) back(kind string, leases ...*redlock.Lease) {
	q := c.q.Load()
	c.mu.Lock()
	calls := q != nil && c.went[kind] < callsBack
	if calls {
		c.went[kind]++
	}
	c.mu.Unlock()
	if !calls {
		return
	}
	ctx := context.Background()
	_ = q.Healthy()
	q.Nodes(ctx)
	_ = q.CheckClock(time.Now())
	for _, key := range []string{"key", "other"} {
		_, _ = q.Holder(ctx, key)
		l, _ := q.TryAcquire(ctx, key)
		_ = l.Release(ctx)
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		l, _ = q.Acquire(ctx, key)
		cancel()
		_ = l.Release(ctx)
	}
	_, _ = board.Of(q).Journal(ctx, "kind", 10)
	for _, l := range leases {
		_ = l.Err()
		l.Deadline()
		_ = l.Context().Err()
		_ = l.Extend(ctx)
		if kind != "TraceReleaseStart" && l.FencingToken()%2 == 0 { // which never returns there, see AcquireTracer
			_ = l.Release(ctx)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.came[kind]++
}

func (c *caller) Enabled(context.Context, slog.Level) bool { return true }

func (c *caller) Handle(_ context.Context, r slog.Record) error {
	c.back("log: " + r.Message)
	return nil
}

func (c *caller) TraceAcquireStart(ctx context.Context, _ redlock.TraceAcquireStartData) context.Context {
	c.back("TraceAcquireStart")
	return ctx
}

func (c *caller) TraceAcquireEnd(_ context.Context, data redlock.TraceAcquireEndData) {
	c.back("TraceAcquireEnd", data.Lease)
}

func (c *caller) TraceAttemptStart(ctx context.Context, _ redlock.TraceAttemptStartData) context.Context {
	c.back("TraceAttemptStart")
	return ctx
}

func (c *caller) TraceAttemptEnd(_ context.Context, data redlock.TraceAttemptEndData) {
	c.back("TraceAttemptEnd", data.Lease)
}

func (c *caller) TraceNodeStart(ctx context.Context, data redlock.TraceNodeStartData) context.Context {
	c.back("TraceNodeStart " + string(data.Op))
	return ctx
}

func (c *caller) TraceNodeEnd(_ context.Context, data redlock.TraceNodeEndData) {
	c.back("TraceNodeEnd " + string(data.Op))
}

func (c *caller) TraceExtend(_ context.Context, data redlock.TraceExtendData) {
	c.back("TraceExtend", data.Lease)
}

func (c *caller) TraceReleaseStart(ctx context.Context, data redlock.TraceReleaseStartData) context.Context {
	c.back("TraceReleaseStart", data.Lease)
	return ctx
}

func (c *caller) TraceReleaseEnd(_ context.Context, data redlock.TraceReleaseEndData) {
	c.back("TraceReleaseEnd", data.Lease)
}

func (c *caller) TraceLost(_ context.Context, data redlock.TraceLostData) {
	c.back("TraceLost", data.Lease)
}

func (c *caller) TraceVote(_ context.Context, data redlock.TraceVoteData) {
	c.q.CompareAndSwap(nil, data.Quorum) // Open tells it, too
	c.back("TraceVote")
}

// A logger, a tracer or a callback that calls the library does not stop it, nor itself, whatever it
// is told and for which key it asks.
func TestForeignCodeCallsBack(t *testing.T) {
	hung := time.AfterFunc(3*time.Minute, func() { // of real time, and of seconds as a rule
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		panic("foreign code that calls the library back hangs")
	})
	defer hung.Stop()
	c := newCaller()
	alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q, err := redlock.Open(fleet.URLs(), redlock.WithTTL(ttl), redlock.WithLogger(slog.New(c)), redlock.WithTracer(c),
			redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
				fleet.ClientOption(url, o)
				dial := o.DialCtxFn
				o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
					c.back("DialCtxFn")
					return dial(ctx, addr, d, tc)
				}
			}))
		require.NoError(t, err)
		c.q.Store(q)
		time.Sleep(ttl)
		hold := func(d time.Duration, keys ...string) {
			for _, key := range keys {
				ctx, cancel := context.WithTimeout(t.Context(), 2*ttl)
				if l, err := q.Acquire(ctx, key); err == nil {
					time.Sleep(d)
					_ = l.Release(ctx)
				}
				cancel()
			}
		}
		_ = q.Do(t.Context(), "done", func(context.Context, *redlock.Lease) error { c.back("Do"); return nil })
		hold(ttl, "key", "other")

		// A node has a damaged counter for a while.
		setCounter(t, fleet.Node(0), "key", "garbage")
		time.Sleep(10 * ttl)
		hold(ttl, "key")
		time.Sleep(10 * ttl)
		hold(ttl, "key")

		// Two ask at once, of which one gives up; nodes fail and come back; a lease is lost.
		second := open(t, fleet)
		ctx, cancel := context.WithCancel(t.Context())
		held, err := second.TryAcquire(t.Context(), "contended")
		require.NoError(t, err)
		var waiting sync.WaitGroup
		for range 3 {
			waiting.Go(func() {
				l, _ := q.Acquire(ctx, "contended")
				_ = l.Release(t.Context())
			})
		}
		time.Sleep(ttl)
		ask(t, fleet, 2, "DEL", "tenure:{contended}") // so that an attempt is granted there, and taken back
		time.Sleep(2 * ttl)
		lost, err := q.TryAcquire(t.Context(), "lost")
		assert.NoError(t, err)
		freeze(t, fleet, 0, 1)
		time.Sleep(5 * ttl)
		thaw(t, fleet, 0, 1)
		cancel()
		waiting.Wait()
		_ = held.Release(t.Context())
		assert.ErrorIs(t, lost.Err(), redlock.ErrLost)
		require.NoError(t, fleet.Node(0).Restart(false))
		fleet.Node(1).JumpClock(time.Hour)
		time.Sleep(10 * ttl)
		hold(ttl, "key", "other")
		closed := make(chan struct{})
		go func() { defer close(closed); assert.NoError(t, q.Close()) }()
		<-closed
		synctest.Wait()
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Equal(t, c.went, c.came)
	for _, kind := range []string{
		"TraceAcquireStart", "TraceAcquireEnd", "TraceAttemptStart", "TraceAttemptEnd", "TraceNodeStart acquire", "TraceNodeEnd acquire", "TraceNodeStart release",
		"TraceNodeEnd release", "TraceNodeEnd extend", "TraceExtend", "TraceReleaseStart", "TraceReleaseEnd", "TraceLost", "TraceVote", "Do", "DialCtxFn",
		"log: redlock: node does not vote for a key", "log: redlock: node votes for a key again", "log: redlock: node failing", "log: redlock: node answers again",
		"log: redlock: node does not vote", "log: redlock: no quorum to acquire a key that is waited for", "log: redlock: a server's clock is wrong",
	} {
		assert.NotZero(t, c.came[kind], "%s was not called", kind)
	}
}

// Who is told of another process, before this one has acquired anything, may acquire a lease: also
// if this process is let in only now.
func TestWhoIsToldOfOthersAcquires(t *testing.T) {
	for word, nodes := range map[string][]int{"a process was refused": {0, 1, 2}, "not refused any more": {0, 3, 4}} {
		t.Run(word, func(t *testing.T) {
			c := newCaller()
			told := "log: redlock: " + map[string]string{"a process was refused": "a process was refused that has other nodes",
				"not refused any more": "this process is not refused any more"}[word]
			bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
				known := make(chan struct{})
				q := openOn(t, fleet, []int{0, 1, 2})
				acquire(t, q)
				_, err := openOn(t, fleet, []int{0, 3, 4}).TryAcquire(t.Context(), "key")
				require.Error(t, err)
				time.Sleep(2 * ttl) // it tries again, and says that it was refused
				require.NoError(t, q.Close())
				called := dialOn(t, fleet, nodes, redlock.WithLogger(slog.New(only{c, told, known})))
				c.q.Store(called)
				close(known)
				time.Sleep(lifetime + lifetimeMore + 4*ttl)
				c.mu.Lock()
				defer c.mu.Unlock()
				require.Equal(t, map[string]int{told: 1}, c.came)
			})
		})
	}
}

// only hears one kind of line.
type only struct {
	*caller

	kind  string
	known chan struct{} // is closed when the caller knows its Quorum
}

func (o only) Handle(ctx context.Context, r slog.Record) error {
	if "log: "+r.Message != o.kind {
		return nil
	}
	<-o.known
	return o.caller.Handle(ctx, r)
}
