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
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/valkeytest"
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
			// On a busy machine the first attempt may meet the joining of nodes and time out: the next
			// one counts.
			require.Less(t, took(func() { l, err = tryUntilAnswered(t, q, "key") }), 2*timeout)
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

// Field: a retried SET was granted by a restarted, empty server. The client hears of the crash only
// when the server is back, so that a repetition would be answered.
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
				assert.Less(t, time.Since(start), longTTL/2)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		calls.Wait()
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() < before+callers/10 }, longTTL/2, pollTick,
		"calls that returned left goroutines behind: %d, then %d", before, runtime.NumGoroutine())
	s.thaw(1, 2)
	for i := 1; i < 3; i++ {
		require.Eventually(t, func() bool { return q.Nodes(t.Context())[i].Reachable }, longTTL, pollTick)
	}
	s.requireFree(longTTL/2, "abandoned requests were carried out late, and not undone")
}

// A name server that is silent is not taken for a node that is.
func TestNameThatIsNotResolvedInTime(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	q := openOf(t, []string{"valkey://node.example.net"}, redlock.WithTTL(serverTTL), logTo(&log), redlock.WithClientOption(func(_ string, o *valkey.ClientOption) {
		o.DialCtxFn = func(ctx context.Context, _ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, d.Timeout)
			defer cancel()
			<-ctx.Done()
			return nil, &net.OpError{Op: "dial", Err: &net.DNSError{Err: "i/o timeout", Name: "node.example.net", IsTimeout: true}}
		}
	}))
	const told = "the name of the node is not resolved in time"
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "node failing") }, patience, pollTick)
	require.Contains(t, log.String(), told)
	require.ErrorContains(t, q.Healthy(), told)
	err := q.Nodes(t.Context())[0].Err
	require.ErrorContains(t, err, told)
	require.ErrorIs(t, err, redlock.ErrTimeout)
}

// A certificate may be renewed in vain: what is wrong with the new one is told, too, and once.
func TestEachReasonForNoConnectionIsTold(t *testing.T) {
	t.Parallel()
	s := startAged(t, 1)
	var log lockedBuffer
	var fails atomic.Pointer[error]
	q := s.gated(logTo(&log), redlock.WithClientOption(func(_ string, o *valkey.ClientOption) {
		o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if why := fails.Load(); why != nil {
				return nil, *why
			}
			return d.DialContext(ctx, "tcp", addr)
		}
	}))
	requireVotes(t, q, 0, patience)
	told := func(line, text string, why error) {
		fails.Store(&why)
		require.Eventually(t, func() bool {
			return slices.ContainsFunc(strings.Split(log.String(), "\n"), func(l string) bool { return strings.Contains(l, line) && strings.Contains(l, text) })
		}, patience, pollTick, "%s", &log)
	}
	alert := func(text string) error { return &net.OpError{Op: "remote error", Err: errors.New("tls: " + text)} }
	told("lacks what it should have", "expired certificate", alert("expired certificate"))
	told("lacks what it should have", "unknown certificate authority", alert("unknown certificate authority"))
	s.kill(0)
	told("node failing", "connection refused", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
	told("node failing", "bad certificate", alert("bad certificate"))
	require.Equal(t, 1, strings.Count(log.String(), "expired certificate"), "%s", &log)
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

func startDetour(t *testing.T, to string) *detour {
	l, err := net.Listen("tcp", "127.0.0.1:0")
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
	q := openOf(t, urls, opts...)
	require.Eventually(t, func() bool { return node(t, q, 0).Votes && node(t, q, 1).Votes && node(t, q, 2).Votes }, longTTL, pollTick)
	return q
}

// The known hole of Redlock: the holder has two of three servers, one of these comes back empty,
// and helps somebody else to a quorum.
func TestGateClosesTheHoleOfRedlock(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		connected bool // before the restart
		opts      []redlock.Option
	}{
		{"a client that was there", true, nil},
		{"a new client", false, nil},
		{"a client that was there, without the gate", true, []redlock.Option{redlock.WithoutRestartGate()}},
		{"a new client, without the gate", false, []redlock.Option{redlock.WithoutRestartGate()}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 3)
			opts := append(test.opts, redlock.WithTTL(3*longTTL), redlock.WithNodeTimeout(longTTL/2)) // nothing expires here
			first := s.gated(append(opts, cutOff(s.Node(2)))...)
			var second *redlock.Quorum
			if test.connected {
				second = s.gated(opts...)
			}
			held, err := first.TryAcquire(t.Context(), "key", redlock.WithoutAutoExtend())
			require.NoError(t, err)
			s.restart(1)
			require.Empty(t, s.locks(1))
			require.Empty(t, s.locks(2))
			if len(test.opts) > 0 {
				s.do([]string{"DEL", "tenure:roster"}) // else it would be noticed that the server has lost its data
			}
			if !test.connected {
				second = s.gated(opts...)
			}
			l, err := second.TryAcquire(t.Context(), "key")
			require.NoError(t, held.Err())
			if len(test.opts) > 0 {
				require.NoError(t, err, "this test would not see two leases")
				require.NoError(t, l.Err())
				return
			}
			require.ErrorIs(t, err, redlock.ErrHeld)
			requireCondition(t, node(t, second, 1).Err, s.Node(1).Addr(), redlock.ConditionQuarantined)
			require.Empty(t, s.locks(1))
			require.Eventually(t, func() bool { return len(s.locks(2)) == 0 }, patience, pollTick, "what the other server granted is released")
			for range 10 {
				_, err = second.TryAcquire(t.Context(), "key")
				require.ErrorIs(t, err, redlock.ErrHeld)
			}
			require.ErrorIs(t, held.Extend(t.Context()), redlock.ErrLost, "only one server has it still")
			require.Empty(t, s.locks(1), "what was put back must not count, so it is not put back")
			_, err = second.TryAcquire(t.Context(), "key")
			require.ErrorIs(t, err, redlock.ErrHeld)
		})
	}
}

// cutOff has nobody connect to a node.
func cutOff(n *valkeytest.Node) redlock.Option {
	return redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
		if url == n.URL() {
			o.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
				return nil, errors.New("cut off")
			}
		}
	})
}

// follow makes a node a replica of another and waits until it has its data.
func (s *servers) follow(replica, master int) {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.Node(master).Addr())
	require.NoError(s.t, err)
	s.do([]string{"CONFIG", "SET", "repl-diskless-sync-delay", "0"}, master)
	s.do([]string{"REPLICAOF", host, port}, replica)
	require.Eventually(s.t, func() bool {
		return s.info(replica, "master_link_status") == "up" && s.info(master, "connected_slaves") != "0"
	}, longTTL, pollTick, "node %d never follows", replica)
}

func (s *servers) promote(replica int) {
	s.t.Helper()
	s.do([]string{"REPLICAOF", "NO", "ONE"}, replica)
}

// three are the URLs of three of a fleet's nodes.
func (s *servers) three(nodes ...int) []string {
	urls := make([]string, len(nodes))
	for i, n := range nodes {
		urls[i] = s.Node(n).URL()
	}
	return urls
}

func TestGateMasterWithAReplica(t *testing.T) {
	t.Parallel()
	s := startAged(t, 4)
	s.follow(3, 0)
	q := gatedURLs(t, s.three(0, 1, 2))
	ce := requireCondition(t, node(t, q, 0).Err, s.Node(0).Addr(), redlock.ConditionReplicated)
	require.ErrorContains(t, ce, "1 replica")
	require.ErrorContains(t, ce, "WithReplicas")
	_, err := q.TryAcquire(t.Context(), "key")
	require.NoError(t, err, "the others are a quorum")

	accepting := gatedURLs(t, s.three(0, 1, 2), redlock.WithReplicas())
	require.True(t, node(t, accepting, 0).Votes)
	require.NoError(t, node(t, accepting, 0).Err)
	s.kill(1)
	_, err = accepting.TryAcquire(t.Context(), "other")
	require.NoError(t, err, "its vote counts")
}

const (
	// day is older than any quarantine.
	day = 24 * time.Hour
	// serverQuarantine follows from serverTTL and the least skew: (2 s + 1 ms) × 1.01 + 2 ms,
	// rounded up, and one.
	serverQuarantine = 4 * time.Second

	// whole is what the rounding of uptimes may add to the end of a quarantine.
	whole = 2 * time.Second
)

// startAged starts servers that have been up for a day, as they say.
func startAged(t *testing.T, n int, opts ...valkeytest.Option) *servers {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("servers are aged on Linux only")
	}
	s := startServers(t, n, append(opts, valkeytest.WithAge(day))...)
	s.requireUptime(day, s.all()...)
	return s
}

// requireUptime waits until servers say that they have been up for so long.
func (s *servers) requireUptime(least time.Duration, nodes ...int) {
	s.t.Helper()
	for _, i := range nodes {
		require.Eventually(s.t, func() bool {
			var seconds int64
			_, err := fmt.Sscan(s.info(i, "uptime_in_seconds"), &seconds)
			return err == nil && time.Duration(seconds)*time.Second >= least
		}, patience, pollTick, "node %d is too young", i)
	}
}

// info is a field of a node's INFO; empty while it does not answer.
func (s *servers) info(node int, field string) string {
	s.t.Helper()
	text, _ := s.Node(node).Do(s.t, "INFO", "everything").ToString()
	_, rest, _ := strings.Cut(text, field+":")
	value, _, _ := strings.Cut(rest, "\r")
	return value
}

// restart ends a server as a crash does and starts it without its data.
func (s *servers) restart(nodes ...int) {
	s.t.Helper()
	for _, i := range nodes {
		require.NoError(s.t, s.Node(i).Restart(false))
	}
}

// gated is open with the gate on, and returns when all nodes were asked who they are.
func (s *servers) gated(opts ...redlock.Option) *redlock.Quorum {
	s.t.Helper()
	return gatedURLs(s.t, s.URLs(), opts...)
}

func gatedURLs(t *testing.T, urls []string, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	opts = append([]redlock.Option{redlock.WithTTL(serverTTL), redlock.WithClockSkew(time.Millisecond),
		redlock.WithNodeTimeout(serverTTL / 4), // for loaded machines
		redlock.WithLogger(slog.New(slog.DiscardHandler))}, opts...)
	q := openOf(t, urls, opts...)
	require.Eventually(t, func() bool {
		for _, n := range q.Nodes(t.Context()) {
			if n.Err != nil && (!n.Reachable && redlock.ErrorType(n.Err) == "timeout" || strings.Contains(n.Err.Error(), "not connected yet")) {
				return false // a loaded machine, or the first look has not ended
			}
		}
		return true
	}, patience, pollTick)
	return q
}

// node is what the Quorum says of one node, once that has answered.
func node(t *testing.T, q *redlock.Quorum, i int) redlock.NodeStatus {
	t.Helper()
	var n redlock.NodeStatus
	require.Eventually(t, func() bool {
		n = q.Nodes(t.Context())[i]
		return n.Reachable
	}, patience, pollTick, "node %d never answers", i)
	return n
}

// requireVotes waits until a node votes, and returns when that was seen.
func requireVotes(t *testing.T, q *redlock.Quorum, i int, within time.Duration) time.Time {
	t.Helper()
	require.Eventually(t, func() bool { return q.Nodes(t.Context())[i].Votes }, within, pollTick, "node %d never votes", i)
	return time.Now()
}

// requireCondition demands that err is a node's, because of a condition, and returns that.
func requireCondition(t *testing.T, err error, addr string, want redlock.Condition) *redlock.ConditionError {
	t.Helper()
	ne := errorAs[*redlock.NodeError](t, err)
	require.Equal(t, addr, ne.Node)
	require.Equal(t, string(want), ne.ErrorType(), "%v", ne)
	ce := errorAs[*redlock.ConditionError](t, ne)
	require.Equal(t, want, ce.Condition)
	require.ErrorContains(t, err, addr)
	return ce
}

// requireConditionOf demands that within a QuorumError.
func requireConditionOf(t *testing.T, err error, addr string, want redlock.Condition) *redlock.ConditionError {
	t.Helper()
	qe := errorAs[*redlock.QuorumError](t, err)
	i := slices.IndexFunc(qe.Errs, func(ne *redlock.NodeError) bool { return ne.Node == addr })
	require.NotEqual(t, -1, i, "no error of %s in %v", addr, err)
	return requireCondition(t, qe.Errs[i], addr, want)
}

func logTo(log *lockedBuffer) redlock.Option {
	return redlock.WithLogger(slog.New(slog.NewTextHandler(log, nil)))
}
