package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

func TestQueueOnServersTakesTurns(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	quorums := make([]*redlock.Quorum, 3)
	for i := range quorums {
		quorums[i] = s.open(redlock.WithTTL(longTTL), redlock.WithNodeTimeout(longTTL/4))
	}
	requireFair(t, contend(t, quorums, func(process int) int { return 1 + process }, 300))
	s.requireFree(longTTL, "a queue of nobody is left behind")
}

// A queue cannot be kept everywhere. That costs no acquisition and no release, and who waits asks
// once a TTL.
func TestWaiterWithoutAQueuePolls(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3, withUser(t, "-@sortedset"))
	holder, other := openURLs(t, s.userURLs()), openURLs(t, s.userURLs())
	l, err := holder.TryAcquire(t.Context(), "key")
	require.NoError(t, err)
	granted := s.acquire(other, "key")
	s.staysHeld(l, serverTTL/2)
	require.NoError(t, l.Release(t.Context()))
	g := receive(t, granted, 2*serverTTL, "without a queue nothing wakes the waiter")
	require.NoError(t, g.err)
	_, err = holder.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrHeld)
	require.NoError(t, g.lease.Release(t.Context()))
	s.requireFree(longTTL/2, "the release was lost")
}

// 4096 wait at most, whatever their number.
func TestQueueOnServersIsBounded(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	l := s.hold(s.open(redlock.WithTTL(longTTL)), "key")
	const fill = "for i = 1, 4096 do redis.call('ZADD', KEYS[1], i, i) end return 'filled'"
	s.do([]string{"EVAL", fill, "1", lockKey("key") + ":wait"})
	granted := s.acquire(s.open(), "key")
	s.staysHeld(l, serverTTL)
	for _, i := range s.all() {
		require.EqualValues(t, 4096, s.waiting(i, "key"))
	}
	require.NoError(t, l.Release(t.Context()))
	require.NoError(t, receive(t, granted, 2*serverTTL, "who has no place is forgotten").err)
}
