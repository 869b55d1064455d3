package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Field: a constructor that dials failed at once on a dead node and took 5 s on a frozen one.
func TestTrap15And22OpenDoesNotWaitForAMinority(t *testing.T) {
	t.Parallel()
	const timeout = 2 * time.Second // of a node: waiting for one that does not answer would take as long
	for _, test := range []struct {
		name string
		hurt func(*servers)
		heal func(*servers)
	}{
		{
			name: "refused",
			hurt: func(s *servers) { s.kill(1, 4) },
			heal: func(s *servers) {
				require.NoError(s.t, s.Node(1).Restart(false))
				require.NoError(s.t, s.Node(4).Restart(false))
			},
		},
		{
			name: "frozen",
			hurt: func(s *servers) { s.freeze(1, 4) },
			heal: func(s *servers) { s.thaw(1, 4) },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startServers(t, 5)
			test.hurt(s)
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

			test.heal(s)
			require.Eventually(t, func() bool {
				nodes := q.Nodes(t.Context())
				return nodes[1].Reachable && nodes[4].Reachable
			}, 4*timeout, pollTick, "the nodes never joined")
			for _, i := range []int{1, 4} {
				require.Eventually(t, func() bool { return s.pttl(i, "key") > 0 }, 2*timeout, pollTick,
					"the next extension leaves the node out that joined")
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
