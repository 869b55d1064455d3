package redlock_test

import (
	"context"

	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

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

// Waiters here poll every 10 s, so one that comes within half of that was called.

// requireCalled demands that a waiter came to something long before its poll.
func requireCalled(t *testing.T, granted <-chan grant) grant {
	t.Helper()
	return receive(t, granted, longTTL/2, "nobody called it")
}

// A short-lived waiter does not shorten the life of the queue for the others.
func TestQueueLivesAsLongAsItsLongestWaiter(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	held := s.hold(s.open(redlock.WithTTL(longTTL)), "key")
	long := s.wait(s.open(redlock.WithTTL(longTTL)), "key")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	short := s.open()
	go func() {
		_, err := short.Acquire(ctx, "key")
		gone <- err
	}()
	for i := range s.Nodes() {
		require.Eventually(t, func() bool { return s.waiting(i, "key") == 2 }, longTTL, pollTick)
	}
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	for i := range s.Nodes() {
		left, err := s.Node(i).Do(t, "PTTL", lockKey("key")+":wait").AsInt64()
		require.NoError(t, err)
		require.Greater(t, left, (2 * longTTL).Milliseconds())
	}
	require.NoError(t, held.Release(t.Context()))
	require.NoError(t, requireCalled(t, long).err)
}

// One that was called, came, and was refused keeps its place, although its turn is over.
func TestCalledAndRefusedKeepsItsPlace(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	held := s.hold(s.open(redlock.WithTTL(longTTL)), "key")
	granted := s.wait(s.open(redlock.WithTTL(longTTL)), "key")
	var member string
	for i := range s.Nodes() {
		first, err := s.Node(i).Do(t, "ZRANGE", lockKey("key")+":wait", "0", "0").AsStrSlice()
		require.NoError(t, err)
		member = first[0]
		s.do([]string{"ZADD", lockKey("key") + ":wait", strconv.FormatInt(-time.Now().Add(-time.Second).UnixMilli(), 10), member}, i)
		words := strings.Fields(member)
		s.do([]string{"PUBLISH", "tenure:call:" + words[2], "1 0 " + words[1] + " somebody"}, i)
	}
	for i := range s.Nodes() { // it comes, and is refused
		require.Eventually(t, func() bool {
			score, err := s.Node(i).Do(t, "ZSCORE", lockKey("key")+":wait", member).AsFloat64()
			return err == nil && score > 0
		}, longTTL/2, pollTick, "it is taken for one that did not come")
	}
	require.NoError(t, held.Release(t.Context()))
	require.NoError(t, requireCalled(t, granted).err)
}

// A holder that may not publish calls nobody, and so reserves for nobody.
func TestMuteHolderReservesNothing(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	s.do([]string{"ACL", "SETUSER", "mute", "on", ">pass", "~*", "resetchannels", "+@all", "-publish"})
	urls := make([]string, 3)
	for i, n := range s.Nodes() {
		urls[i] = "valkey://mute:pass@" + n.Addr()
	}
	held := s.hold(openURLs(t, urls, redlock.WithTTL(longTTL)), "key")
	other := s.open()
	s.wait(s.open(redlock.WithTTL(longTTL)), "key")
	require.NoError(t, held.Release(t.Context()))
	_, err := other.TryAcquire(t.Context(), "key")
	require.NoError(t, err)
}

// A user who may neither publish nor subscribe has no messages at all, and polls.
func TestTrap14WaiterWithoutMessagesPolls(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	s.do([]string{"ACL", "SETUSER", "mute", "on", ">pass", "~*", "resetchannels", "+@all", "-publish", "-subscribe"})
	urls := make([]string, 3)
	for i, n := range s.Nodes() {
		urls[i] = "valkey://mute:pass@" + n.Addr()
	}
	held := s.hold(openURLs(t, urls, redlock.WithTTL(longTTL)), "key")
	granted := s.acquire(openURLs(t, urls), "key")
	s.staysHeld(held, serverTTL/2)
	require.NoError(t, held.Release(t.Context()))
	g := receive(t, granted, 3*serverTTL/2, "without messages nothing wakes the waiter")
	require.NoError(t, g.err)
}

// own returns the commands a node served, without those of the test itself, and of trials, which
// alone delete something here.
func (s *servers) own(node int) map[string]int64 {
	s.t.Helper()
	stats := s.Node(node).CommandStats(s.t)
	for _, mine := range []string{"info", "config|resetstat", "keys", "pubsub|channels"} {
		delete(stats, mine)
	}
	trials := stats["del"]
	for name, times := range map[string]int64{"evalsha": 1, "time": 1, "get": 2, "hget": 1, "hset": 1, "hmget": 1, "pttl": 1, "set": 2, "pexpire": 2, "del": 1, "exists": 1, "mget": 1,
		"zadd": 1, "zrank": 1, "zscore": 1, "zcard": 1, "zrange": 1, "zrem": 1, "publish": 1} {
		if stats[name] -= trials * times; stats[name] == 0 {
			delete(stats, name)
		}
	}
	return stats
}
