package redlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
)

// Field: a constructor that dials failed at once on a dead node and took 5 s on a frozen one.
func TestTrap15And22OpenDoesNotWaitForAMinority(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second // of a node: waiting for one that does not answer would take as long
	for name, does := range map[string][2]func(*servers){
		"refused": {func(s *servers) { s.kill(1, 4) }, func(s *servers) { s.restart(1, 4) }},
		"frozen":  {func(s *servers) { s.freeze(1, 4) }, func(s *servers) { s.thaw(1, 4) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServers(t, 5)
			does[0](s)
			var q *redlock.Quorum
			var l *redlock.Lease
			var err error
			opts := append(quietOptions(), redlock.WithTTL(4*timeout), redlock.WithExtendInterval(serverTTL/2), redlock.WithNodeTimeout(timeout))
			require.Less(t, took(func() { q, err = redlock.Open(s.URLs(), opts...) }), timeout)
			require.NoError(t, err)
			t.Cleanup(func() { require.Less(t, took(func() { require.NoError(t, q.Close()) }), 2*timeout) })
			require.Less(t, took(func() { l, err = q.TryAcquire(t.Context(), "key") }), timeout)
			require.NoError(t, err)
			for i, status := range q.Nodes(t.Context()) {
				require.Equal(t, s.Node(i).Addr(), status.Node)
				require.Equal(t, i != 1 && i != 4, status.Reachable, "%+v", status)
				require.Equal(t, status.Reachable, status.Err == nil, "%+v", status)
			}
			does[1](s)
			for _, i := range []int{1, 4} {
				require.Eventually(t, func() bool { return q.Nodes(t.Context())[i].Reachable }, 4*timeout, pollTick, "it never joined")
				require.Eventually(t, func() bool { return s.pttl(i, "key") > 0 }, 2*timeout, pollTick, "the next extension leaves it out")
			}
			require.NoError(t, l.Err())
		})
	}
}

// The same where the client hears of the crash only when the server is back, so that a repetition
// would be answered.
func TestTrap18AcquireIsNotRepeatedAfterAPartition(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	network := newPartition()
	q := s.open(redlock.WithTTL(longTTL), redlock.WithClientOption(network.option))
	s.enter(q)
	s.freeze(2)
	l, err := q.TryAcquire(t.Context(), "key", redlock.WithoutAutoExtend())
	require.NoError(t, err)
	s.requireUnread(2)
	network.cut.Store(true)
	require.NoError(t, s.Node(2).Restart(false))
	network.heal()
	requireUnasked(s, q, 2)
	require.Empty(t, s.locks(2))
	require.NoError(t, l.Err())
}

// enter waits until the process has entered at each node: its next acquisition is sent at once, and
// behind nothing.
func (s *servers) enter(q *redlock.Quorum) {
	s.t.Helper()
	require.NoError(s.t, s.hold(q, "before").Release(s.t.Context()))
	s.requireFree(longTTL, "a lease that was released")
}

// requireUnasked waits until the Quorum is connected to nodes that were restarted. What it had for
// them was sent before then: requests to a node stay in order. None of it may have been an
// acquisition, which leaves a counter.
func requireUnasked(s *servers, q *redlock.Quorum, nodes ...int) {
	s.t.Helper()
	for _, i := range nodes {
		require.Eventually(s.t, func() bool { return q.Nodes(s.t.Context())[i].Reachable }, longTTL, pollTick)
		require.Empty(s.t, s.Node(i).Keys(s.t))
	}
}

// Field: connections that had broken while nobody looked cost the first calls after it.
func TestRestartWhileIdleIsNotNoticed(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL))
	for _, i := range s.all() {
		require.NoError(t, s.Node(i).Restart(false))
	}
	l, err := q.TryAcquire(t.Context(), "key")
	require.NoError(t, err)
	require.NoError(t, l.Release(t.Context()))
}

// partition is a network that can be cut and healed, once. While it is cut, what is sent is lost
// and nothing is heard, not even that the other end is gone.
type partition struct {
	cut    atomic.Bool
	healed chan struct{}
}

func newPartition() *partition { return &partition{healed: make(chan struct{})} }

func (p *partition) heal() {
	p.cut.Store(false)
	close(p.healed)
}

// option is for redlock.WithClientOption.
func (p *partition) option(_ string, o *valkey.ClientOption) {
	o.DialCtxFn = p.through(func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", addr)
	})
}

func (p *partition) through(dial dialFunc) dialFunc {
	return func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, addr, d, tc)
		if err != nil {
			return nil, err
		}
		return &partitionedConn{Conn: conn, p: p, closed: make(chan struct{})}, nil
	}
}

type partitionedConn struct {
	net.Conn
	p      *partition
	once   sync.Once
	closed chan struct{}
	until  atomic.Pointer[time.Time] // read deadline; nil without one
}

// Read keeps what arrives while the network is cut until it is healed, as resending would.
func (c *partitionedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.p.cut.Load() || errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	var late <-chan time.Time
	if until := c.until.Load(); until != nil && !until.IsZero() {
		late = time.After(time.Until(*until))
	}
	select {
	case <-c.p.healed:
		return n, err
	case <-c.closed:
		return 0, net.ErrClosed
	case <-late:
		return 0, os.ErrDeadlineExceeded
	}
}

func (c *partitionedConn) Write(b []byte) (int, error) {
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	default:
	}
	if c.p.cut.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *partitionedConn) SetDeadline(t time.Time) error {
	c.until.Store(&t)
	return c.Conn.SetDeadline(t)
}

func (c *partitionedConn) SetReadDeadline(t time.Time) error {
	c.until.Store(&t)
	return c.Conn.SetReadDeadline(t)
}

func (c *partitionedConn) Close() error { c.once.Do(func() { close(c.closed) }); return c.Conn.Close() }

// Field: one connection to a frozen node, 500 goroutines with contexts of 50 ms: calls came back
// after up to 11.9 s, and the cancelled SETs ran on resume with a full TTL.
func TestTrap20FrozenNodesDoNotOutliveTheContext(t *testing.T) {
	const callers, rounds, patience = 500, 3, 50 * time.Millisecond
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL))
	s.freeze(1, 2)
	before := runtime.NumGoroutine()
	var calls sync.WaitGroup
	for range rounds {
		for i := range callers {
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				start := time.Now()
				_, err := q.TryAcquire(ctx, fmt.Sprint("key", i))
				assert.Less(t, time.Since(start), patience+2*lateness)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		calls.Wait()
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() < before+callers/10 }, serverTTL/2, pollTick,
		"calls that returned left goroutines behind: %d, then %d", before, runtime.NumGoroutine())
	s.thaw(1, 2)
	for i := 1; i < 3; i++ {
		require.Eventually(t, func() bool { return q.Nodes(t.Context())[i].Reachable }, longTTL, pollTick)
	}
	s.requireFree(longTTL/2, "abandoned requests were carried out late, and not undone")
}

// detour is an address behind which the server changes: connections stay with the one that they
// were made to.
type detour struct {
	net.Listener
	next     atomic.Pointer[func() string] // what the next connection leads to
	accepted atomic.Int64
	mu       sync.Mutex
	conns    []net.Conn // guarded by mu
	copying  sync.WaitGroup
}

func startDetour(t *testing.T, to string) *detour { return startDetourAt(t, "127.0.0.1:0", to) }

func startDetourAt(t *testing.T, at, to string) *detour {
	l, err := net.Listen("tcp", at)
	require.NoError(t, err)
	d := &detour{Listener: l}
	d.lead(to)
	d.copying.Go(d.accept)
	t.Cleanup(func() {
		assert.NoError(t, d.Close())
		d.cut()
		d.copying.Wait()
	})
	return d
}

// lead has new connections lead to a server.
func (d *detour) lead(to string) { d.next.Store(new(func() string { return to })) }

// cut ends all connections.
func (d *detour) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.conns {
		conn.Close()
	}
	d.conns = nil
}

func (d *detour) accept() {
	for {
		near, err := d.Accept()
		if err != nil {
			return
		}
		d.accepted.Add(1)
		far, err := net.Dial("tcp", (*d.next.Load())())
		if err != nil {
			near.Close()
			continue
		}
		d.mu.Lock()
		d.conns = append(d.conns, near, far)
		d.mu.Unlock()
		for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
			d.copying.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				pair[0].Close()
				pair[1].Close()
			})
		}
	}
}

// looking makes a Quorum of servers that all vote, and looks at each of them every TTL.
func looking(t *testing.T, urls []string, log *lockedBuffer) *redlock.Quorum {
	t.Helper()
	opts := []redlock.Option{redlock.WithTTL(2 * time.Second), redlock.WithLogger(slog.New(slog.NewTextHandler(log, nil)))}
	q, err := redlock.Open(urls, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close()) })
	require.Eventually(t, func() bool { return node(t, q, 0).Votes && node(t, q, 1).Votes && node(t, q, 2).Votes }, longTTL, pollTick)
	return q
}
