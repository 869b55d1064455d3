package redlock_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Field: the rollback used the caller's cancelled context, the key stayed for 7.6 s.
func TestTrap03CancelledAcquireLeavesNoKey(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL), redlock.WithNodeTimeout(longTTL/4))
	entered(t, q)
	s.freeze(0, 1, 2)
	ctx, cancel := context.WithCancel(t.Context())
	granted := tryAcquire(ctx, q, "key")
	s.requireUnread(0, 1, 2)
	cancel()
	g := receive(t, granted, lateness, "TryAcquire ignores its context")
	require.ErrorIs(t, g.err, context.Canceled)
	s.thaw(0, 1, 2)
	s.requireGranted(0, 1, 2)
	s.requireFree(longTTL/4, "granted after the caller had left, and never released")
}

// Field: one of three nodes stalled, Lock took 5.0 s and Unlock 5.0 s.
func TestTrap04FrozenNodeDelaysNobody(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(4*serverTTL), redlock.WithNodeTimeout(serverTTL))
	entered(t, q)
	for frozen := range 3 {
		s.freeze(frozen)
		var l *redlock.Lease
		var err error
		require.Less(t, took(func() { l, err = q.TryAcquire(t.Context(), "key") }), serverTTL/2)
		require.NoError(t, err)
		require.Less(t, took(func() { err = l.Extend(t.Context()) }), serverTTL/2)
		require.NoError(t, err)
		require.Less(t, took(func() { err = l.Release(t.Context()) }), serverTTL/2)
		require.NoError(t, err)
		s.thaw(frozen)
		require.Eventually(t, func() bool { return q.Nodes(t.Context())[frozen].Reachable }, longTTL, pollTick)
	}
	s.requireFree(2*serverTTL, "the node that was frozen kept its key")
}

// Field: an even number of nodes and a tied vote, and the call hangs for ever.
func TestTrap06TiedVoteReturns(t *testing.T) {
	t.Parallel()
	for _, nodes := range []int{2, 4} {
		t.Run(fmt.Sprint(nodes, " nodes"), func(t *testing.T) {
			t.Parallel()
			s := startServers(t, nodes)
			q := s.open(redlock.WithTTL(longTTL))
			taken := s.all()[:nodes/2]
			s.squat("key", longTTL, taken...)
			var err error
			require.Less(t, took(func() { _, err = q.TryAcquire(t.Context(), "key") }), longTTL/4)
			require.ErrorIs(t, err, redlock.ErrSplit, "nobody can have a quorum")
			for i := range nodes {
				require.Eventually(t, func() bool { return len(s.locks(i)) == 0 || i < nodes/2 }, longTTL/4, pollTick,
					"node %d keeps what the failed attempt was granted", i)
			}
			s.do([]string{"DEL", lockKey("key")}, taken...)
			l := s.hold(q, "key")
			require.NoError(t, l.Release(t.Context()))
			s.requireFree(longTTL/4, "released")
		})
	}
}

// lockedBuffer is a buffer that one goroutine fills while another looks at it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Field: a request abandoned at its timeout ran 2 s later with a full TTL; and the retry after a
// lost reply, with a new owner value, waited for one's own key.
func TestTrap11And17AbandonedAcquireIsUndone(t *testing.T) {
	t.Parallel()
	const ttl = 6 * serverTTL
	for _, test := range []struct {
		name  string
		close bool // thaw after the client has given up its connections
	}{
		{"on the same connection", false},
		{"on a new connection", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startServers(t, 3)
			var log lockedBuffer
			q := s.open(redlock.WithTTL(ttl), redlock.WithNodeTimeout(serverTTL), redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			entered(t, q)
			s.freeze(0, 1)
			_, err := q.TryAcquire(t.Context(), "key")
			require.ErrorIs(t, err, redlock.ErrTimeout)
			s.requireUnread(0, 1)
			if test.close {
				for i := range 2 {
					require.Eventually(t, func() bool { return strings.Contains(log.String(), s.Node(i).Addr()) }, ttl/2, pollTick)
				}
			}
			s.thaw(0, 1)
			s.requireGranted(0, 1)
			s.requireFree(ttl/2, "the abandoned request's key is still there")
			l, err := tryUntilAnswered(t, q, "key")
			require.NoError(t, err)
			require.NoError(t, l.Err())
		})
	}
}

// Field: Unlock was handed a context that had been cancelled to end the job, and did nothing.
func TestTrap03ReleaseWorksWithACancelledContext(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	l := s.hold(s.open(redlock.WithTTL(longTTL)), "key")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, l.Release(ctx))
	s.requireFree(longTTL/4, "the release died with its context")
}

// Field: a second Unlock panicked, or freed the next owner's key.
func TestTrap23EveryReleaseReturnsTheSame(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL))
	l := s.hold(q, "key")
	const callers = 20
	errs := make(chan error, callers)
	for range callers {
		go func() { errs <- l.Release(t.Context()) }()
	}
	for range callers {
		require.NoError(t, receive(t, errs, longTTL/4, "Release hangs"))
	}
	require.ErrorIs(t, l.Err(), redlock.ErrReleased)
	s.requireFree(longTTL/4, "released")

	next := s.hold(s.open(), "key")
	require.NoError(t, l.Release(t.Context()))
	require.ErrorIs(t, l.Extend(t.Context()), redlock.ErrReleased)
	s.staysHeld(next, serverTTL/2)
	for _, i := range s.all() {
		require.Positive(t, s.pttl(i, "key"), "an earlier owner freed the key")
	}
}

func TestTrap23ReleaseAfterLossSaysSoAndCleansUp(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	l := s.hold(s.open(redlock.WithTTL(3*serverTTL)), "key")
	s.do([]string{"DEL", lockKey("key")}, 0, 1)
	s.requireLost(l, redlock.LostRefused)
	require.NotEmpty(t, s.locks(2), "nothing to clean up")
	for range 2 {
		err := l.Release(t.Context())
		require.ErrorIs(t, err, redlock.ErrLost)
		require.Equal(t, "lost_refused", redlock.ErrorType(err))
	}
	s.requireFree(serverTTL, "keys of a lost lease stayed after its release")
}

// A release that reaches no quorum says so, and is made up for when the network is back.
func TestReleaseIsRepeatedUntilTheNodesAnswer(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	network := newPartition()
	var log lockedBuffer
	l := s.hold(s.open(redlock.WithTTL(longTTL), redlock.WithClientOption(network.option),
		redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))), "key")
	network.cut.Store(true)
	err := l.Release(t.Context())
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorIs(t, err, redlock.ErrTimeout)
	require.ErrorIs(t, l.Err(), redlock.ErrReleased)
	require.Error(t, l.Context().Err())
	for i := range s.all() {
		require.Eventually(t, func() bool { return strings.Contains(log.String(), s.Node(i).Addr()) }, longTTL/2, pollTick,
			"a connection without answers is never given up")
	}
	require.NotEmpty(t, s.locks(0))
	network.heal()
	s.requireFree(longTTL/2, "the release was given up")
}

func TestMinHoldKeepsTheKeyAfterRelease(t *testing.T) {
	t.Parallel()
	const hold = 3 * serverTTL / 2
	s := startServers(t, 3)
	q, other := s.open(redlock.WithTTL(2*serverTTL)), s.open(redlock.WithTTL(longTTL))
	began := time.Now()
	l := s.hold(q, "key", redlock.WithMinHold(hold))
	granted := s.wait(other, "key") // polls too seldom to find out by itself
	require.NoError(t, l.Release(t.Context()))
	require.ErrorIs(t, l.Err(), redlock.ErrReleased, "the lease itself ends at the release")
	for _, i := range s.all() {
		require.Eventually(t, func() bool { left := s.pttl(i, "key"); return left <= hold }, hold/2, pollTick)
		require.Positive(t, s.pttl(i, "key"))
	}
	_, err := q.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrHeld)
	h, err := q.Holder(t.Context(), "key")
	require.NoError(t, err)
	require.LessOrEqual(t, h.TTL, hold)

	g := receive(t, granted, longTTL/2, "the waiter did not hear when the minimum hold would be over")
	require.NoError(t, g.err)
	require.WithinRange(t, g.at, began.Add(hold), began.Add(hold+serverTTL/2))
}

// A lock whose expiry something else has taken away is freed after the minimum hold like any other.
func TestMinHoldOfALockWithoutExpiry(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	const hold = 200 * time.Millisecond
	q := s.open(redlock.WithTTL(longTTL))
	l := s.hold(q, "key", redlock.WithMinHold(hold))
	s.do([]string{"PERSIST", lockKey("key")})
	require.NoError(t, l.Release(t.Context()))
	s.requireFree(longTTL, "key")
}

// Field: closing with held leases hung, or freed keys under work that was still running.
func TestTrap23CloseWithHeldLeases(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open()
	held := []*redlock.Lease{s.hold(q, "a"), s.hold(q, "b", redlock.WithoutAutoExtend()), s.hold(q, "c")}
	released := s.hold(q, "released")
	require.NoError(t, released.Release(t.Context()))
	var closing sync.WaitGroup
	for range 5 {
		closing.Go(func() { assert.NoError(t, q.Close()) })
	}
	closing.Wait()
	for _, l := range held {
		s.requireLost(l, redlock.LostClosed)
		require.ErrorIs(t, l.Err(), redlock.ErrClosed)
		require.ErrorIs(t, l.Err(), redlock.ErrLost)
		for _, i := range s.all() {
			require.Positive(t, s.pttl(i, l.Key()), "freed under the work")
		}
	}
	require.ErrorIs(t, released.Err(), redlock.ErrReleased)

	_, err := q.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrClosed)
	_, err = q.Acquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrClosed)
	_, err = q.Holder(t.Context(), "a")
	require.ErrorIs(t, err, redlock.ErrClosed)
	require.ErrorIs(t, held[0].Extend(t.Context()), redlock.ErrClosed)
	require.Less(t, took(func() { err = held[0].Release(t.Context()) }), serverTTL/2)
	require.ErrorIs(t, err, redlock.ErrClosed)
	for _, status := range q.Nodes(t.Context()) {
		require.False(t, status.Reachable)
		require.Equal(t, "closed", redlock.ErrorType(status.Err))
	}
	require.NoError(t, q.Close())
	s.requireFree(5*serverTTL/4, "keys of closed leases are extended still")
}
