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
