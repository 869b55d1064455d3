package redlock_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

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
