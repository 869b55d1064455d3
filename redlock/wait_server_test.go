package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Field: waiters that never wake after their subscription was lost.
func TestTrap14KilledSubscriptionsLoseNothing(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	held := s.hold(s.open(redlock.WithTTL(longTTL)), "key")
	granted := s.wait(s.open(), "key")
	for _, n := range s.Nodes() {
		require.Eventually(t, func() bool { // it waits when a quorum can call: the last may not have answered yet
			killed, err := n.Do(t, "CLIENT", "KILL", "TYPE", "pubsub").AsInt64()
			return err == nil && killed > 0
		}, longTTL, pollTick)
	}
	require.NoError(t, held.Release(t.Context()))
	g := receive(t, granted, 3*serverTTL/2, "the waiter sleeps on")
	require.NoError(t, g.err)
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
