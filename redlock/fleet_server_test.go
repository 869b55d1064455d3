package redlock_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// The tests in *_server_test.go run against valkey-server processes. Time passes for real there, so
// what they assert is a fraction of the TTL, never a speed.

const (
	// serverTTL is for tests that wait until something expires.
	serverTTL = 2 * time.Second
	// longTTL is for tests in which nothing may vanish by expiring.
	longTTL = 10 * time.Second
	// lateness is what a loaded machine may add to a moment in time.
	lateness = 500 * time.Millisecond
	// patience is for what comes on any machine, however busy, and is found by nothing else.
	patience = 2 * time.Minute
	// pollTick is how often a test looks for what sends no event.
	pollTick = 5 * time.Millisecond
)

// servers is a fleet of real servers with what tests do to them and ask them.
type servers struct {
	*valkeytest.Fleet
	t *testing.T
}

func startServers(t *testing.T, n int, opts ...valkeytest.Option) *servers {
	t.Helper()
	return &servers{valkeytest.Start(t, n, opts...), t}
}

// open makes a Quorum that is closed with the test and waits until all nodes have answered it that
// answer at all: a connection may take longer on a busy machine than a node has for an answer.
func (s *servers) open(opts ...redlock.Option) *redlock.Quorum {
	s.t.Helper()
	return openURLs(s.t, s.URLs(), opts...)
}

func openURLs(t *testing.T, urls []string, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	q := openOf(t, urls, append(quietOptions(), opts...)...)
	awaitAnswers(t, q)
	return q
}

// openOf makes a Quorum that is closed with the test.
func openOf(t *testing.T, urls []string, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	q, err := redlock.Open(urls, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close()) })
	return q
}

// awaitAnswers waits until every node has answered, or has had the time for it on any machine.
func awaitAnswers(t *testing.T, q *redlock.Quorum) {
	t.Helper()
	const tries = 5
	for range tries {
		silent := func(n redlock.NodeStatus) bool { return errors.Is(n.Err, redlock.ErrTimeout) }
		if !slices.ContainsFunc(q.Nodes(t.Context()), silent) {
			return
		}
	}
}

func quietOptions() []redlock.Option {
	return []redlock.Option{redlock.WithTTL(serverTTL), redlock.WithMaxTTL(time.Minute), redlock.WithoutRestartGate(), redlock.WithLogger(slog.New(slog.DiscardHandler))}
}

// tryUntilAnswered is TryAcquire on nodes that are well, as often as it takes for them to answer in
// time: they are slow on a busy machine. An attempt that was too slow is taken back when they have
// answered; until then it is in the way of the next one.
func tryUntilAnswered(t *testing.T, q *redlock.Quorum, key string, opts ...redlock.LeaseOption) (l *redlock.Lease, err error) {
	t.Helper()
	tooSlow := false
	require.Eventually(t, func() bool {
		l, err = q.TryAcquire(t.Context(), key, opts...)
		var held *redlock.HeldError
		if errors.Is(err, redlock.ErrTimeout) || tooSlow && errors.As(err, &held) && held.Self {
			tooSlow = true
			return false
		}
		return true
	}, patience, pollTick)
	return l, err
}

// hold acquires a key and waits until all running nodes have it: TryAcquire returns when a quorum
// has.
func (s *servers) hold(q *redlock.Quorum, key string, opts ...redlock.LeaseOption) *redlock.Lease {
	s.t.Helper()
	l, err := tryUntilAnswered(s.t, q, key, opts...)
	require.NoError(s.t, err)
	require.Eventually(s.t, func() bool {
		for _, n := range s.Nodes() {
			if there, err := n.Do(s.t, "EXISTS", lockKey(key)).AsBool(); err != nil || !there {
				return false
			}
		}
		return true
	}, patience, pollTick, "the nodes behind the quorum never granted")
	return l
}

func (s *servers) freeze(nodes ...int) {
	s.t.Helper()
	for _, i := range nodes {
		require.NoError(s.t, s.Node(i).Freeze())
	}
}

func (s *servers) thaw(nodes ...int) {
	s.t.Helper()
	for _, i := range nodes {
		require.NoError(s.t, s.Node(i).Thaw())
	}
}

func (s *servers) kill(nodes ...int) {
	s.t.Helper()
	for _, i := range nodes {
		require.NoError(s.t, s.Node(i).Kill())
	}
}

// do runs a command that has to succeed on the nodes, all of them when none is named.
func (s *servers) do(args []string, nodes ...int) {
	s.t.Helper()
	if len(nodes) == 0 {
		nodes = s.all()
	}
	for _, i := range nodes {
		require.NoError(s.t, s.Node(i).Do(s.t, args...).Error(), "%v", args)
	}
}

func (s *servers) all() []int {
	nodes := make([]int, len(s.Nodes()))
	for i := range nodes {
		nodes[i] = i
	}
	return nodes
}

// isFence reports whether a key has the counters of a prefix.
func isFence(key string) bool { return strings.HasSuffix(key, ":fences") }

func lockKey(key string) string { return "tenure:{" + key + "}" }

// fences is where the counters are.
const fences = "tenure:fences"

// squat writes another owner's value by hand, as a foreign holder of the key.
func (s *servers) squat(key string, ttl time.Duration, nodes ...int) {
	s.t.Helper()
	owner := "squatter/" + strings.Repeat("A", 22)
	s.do([]string{"SET", lockKey(key), owner, "PX", fmt.Sprint(ttl.Milliseconds())}, nodes...)
}

// pttl is the remaining life of a key's lock on a node; negative without one.
func (s *servers) pttl(node int, key string) time.Duration {
	s.t.Helper()
	ms, err := s.Node(node).Do(s.t, "PTTL", lockKey(key)).AsInt64()
	require.NoError(s.t, err)
	return time.Duration(ms) * time.Millisecond
}

// locks returns every key on a node that is no fencing counter.
func (s *servers) locks(node int) []string {
	s.t.Helper()
	return slices.DeleteFunc(s.Node(node).Keys(s.t), func(key string) bool { return isFence(key) })
}

// requireFree waits until no node has a lock any more.
func (s *servers) requireFree(within time.Duration, why string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		for _, i := range s.all() {
			if len(s.locks(i)) > 0 {
				return false
			}
		}
		return true
	}, within, pollTick, why)
}

// requireUnread waits until requests lie in a frozen node's socket. Only Linux tells; elsewhere it
// returns.
func (s *servers) requireUnread(nodes ...int) {
	s.t.Helper()
	if runtime.GOOS != "linux" {
		return
	}
	for _, i := range nodes {
		require.Eventually(s.t, func() bool { return s.unread(i) }, patience, pollTick, "node %d was never asked", i)
	}
}

// unread looks for bytes in a receive queue of the node's port in /proc/net/tcp (proc(5)).
func (s *servers) unread(node int) bool {
	table, err := os.ReadFile("/proc/net/tcp")
	require.NoError(s.t, err)
	_, text, _ := net.SplitHostPort(s.Node(node).Addr())
	port, err := strconv.Atoi(text)
	require.NoError(s.t, err)
	local := fmt.Sprintf(":%04X", port)
	lines := bufio.NewScanner(bytes.NewReader(table))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		const established = "01"
		if len(f) > 4 && strings.HasSuffix(f[1], local) && f[3] == established && !strings.HasSuffix(f[4], ":00000000") {
			return true
		}
	}
	return false
}

// staysHeld watches a lease for a while.
func (s *servers) staysHeld(l *redlock.Lease, d time.Duration) {
	s.t.Helper()
	select {
	case <-l.Context().Done():
		require.NoError(s.t, context.Cause(l.Context()))
	case <-time.After(d):
		require.NoError(s.t, l.Err())
	}
}

// requireLost waits for the end of a lease and returns when that was seen.
func (s *servers) requireLost(l *redlock.Lease, reason redlock.LostReason) time.Time {
	s.t.Helper()
	select {
	case <-l.Context().Done():
	case <-time.After(2 * l.TTL()):
		require.Fail(s.t, "the lease never ended")
	}
	at := time.Now()
	var lost *redlock.LostError
	require.ErrorAs(s.t, context.Cause(l.Context()), &lost)
	require.Equal(s.t, reason, lost.Reason)
	require.Equal(s.t, l.Key(), lost.Key)
	return at
}

// grant is what an Acquire in the background came to.
type grant struct {
	lease *redlock.Lease
	err   error
	at    time.Time
}

// waiting is how many wait for a key on a node.
func (s *servers) waiting(i int, key string) int64 {
	s.t.Helper()
	n, err := s.Node(i).Do(s.t, "ZCARD", lockKey(key)+":wait").AsInt64()
	require.NoError(s.t, err)
	return n
}

// wait starts an Acquire and returns when it waits for the key on all nodes.
func (s *servers) wait(q *redlock.Quorum, key string, opts ...redlock.LeaseOption) <-chan grant {
	s.t.Helper()
	before := make([]int64, len(s.Nodes()))
	for i := range before {
		before[i] = s.waiting(i, key)
	}
	granted := s.acquire(q, key, opts...)
	for i := range before {
		require.Eventually(s.t, func() bool { return s.waiting(i, key) == before[i]+1 }, patience, pollTick, "it does not wait on node %d, where %d waited", i, before[i])
	}
	return granted
}

// acquire starts an Acquire that ends with the test.
func (s *servers) acquire(q *redlock.Quorum, key string, opts ...redlock.LeaseOption) <-chan grant {
	granted := make(chan grant, 1)
	var ended sync.WaitGroup
	ended.Go(func() {
		l, err := q.Acquire(s.t.Context(), key, opts...)
		granted <- grant{l, err, time.Now()}
	})
	s.t.Cleanup(ended.Wait)
	return granted
}

// receive returns what arrives on ch, and fails the test after a while.
func receive[T any](t *testing.T, ch <-chan T, within time.Duration, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(within):
		require.FailNow(t, what, "nothing within %v", within)
		panic("unreachable")
	}
}

// took returns how long do took, less the time for which a timer beside it was late: that is the
// machine's, which may be busy.
func took(do func()) time.Duration {
	done, late := make(chan struct{}), make(chan time.Duration)
	go func() {
		var sum time.Duration
		for {
			before := time.Now()
			select {
			case <-done:
				late <- sum
				return
			case <-time.After(time.Millisecond):
				sum += time.Since(before) - time.Millisecond
			}
		}
	}()
	start := time.Now()
	do()
	elapsed := time.Since(start)
	close(done)
	return elapsed - <-late
}

// acquiring starts an Acquire, and trying a TryAcquire.
func acquiring(ctx context.Context, q *redlock.Quorum, key string, opts ...redlock.LeaseOption) <-chan grant {
	return begun(func() (*redlock.Lease, error) { return q.Acquire(ctx, key, opts...) })
}

func trying(ctx context.Context, q *redlock.Quorum, key string, opts ...redlock.LeaseOption) <-chan grant {
	return begun(func() (*redlock.Lease, error) { return q.TryAcquire(ctx, key, opts...) })
}

func begun(ask func() (*redlock.Lease, error)) <-chan grant {
	granted := make(chan grant, 1)
	go func() {
		l, err := ask()
		granted <- grant{l, err, time.Now()}
	}()
	return granted
}
