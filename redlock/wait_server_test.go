package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Polls every 10 s are too seldom to explain a hand-over within a second.
func TestWaiterHearsOfTheRelease(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		hurt func(*servers)
	}{
		{"all nodes", func(*servers) {}},
		{"one of three killed", func(s *servers) { s.kill(2) }},
		{"one of three frozen", func(s *servers) { s.freeze(2) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startServers(t, 3)
			held := s.hold(s.open(redlock.WithTTL(longTTL)), "key")
			waiter := s.open(redlock.WithTTL(longTTL))
			granted := s.wait(waiter, "key")
			test.hurt(s)
			// The attempt that follows the subscription, as well as one that the hurt may cause, is
			// over.
			require.Eventually(t, func() bool { return waiter.Nodes(t.Context())[0].Reachable }, longTTL, pollTick)
			require.NoError(t, held.Release(t.Context()))
			g := receive(t, granted, serverTTL, "the release was not heard")
			require.NoError(t, g.err)
			require.Greater(t, g.lease.FencingToken(), held.FencingToken())
			s.thaw(2)
		})
	}
}

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

// Field: of several waiters one got the lease and the others slept through the next releases.
func TestEveryWaiterGetsItsTurn(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL))
	held := s.hold(q, "key")
	const waiters = 6
	granted := make(chan grant, waiters)
	for i := range waiters {
		var one <-chan grant
		if i < waiters/2 {
			one = s.wait(s.open(redlock.WithTTL(longTTL)), "key")
		} else {
			one = s.acquire(q, "key") // those of one process stand behind its first
		}
		go func() { granted <- <-one }()
	}
	last := held.FencingToken()
	require.NoError(t, held.Release(t.Context()))
	for range waiters {
		g := receive(t, granted, longTTL/2, "a waiter was forgotten")
		require.NoError(t, g.err)
		require.Greater(t, g.lease.FencingToken(), last)
		last = g.lease.FencingToken()
		require.NoError(t, g.lease.Release(t.Context()))
	}
}
