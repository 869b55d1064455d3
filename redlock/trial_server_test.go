package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// An operation that a server refuses has it looked at now, and not when the next look is due.
func TestRefusedOperationHasTheServerLookedAt(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	q := gatedURLs(t, s.URLs(), redlock.WithTTL(8*longTTL), redlock.WithMaxTTL(8*longTTL)) // a look every ten seconds
	require.NoError(t, s.hold(q, "before").Release(t.Context()))
	s.do([]string{"CONFIG", "SET", "maxmemory", "1"})
	began := time.Now()
	_, err := q.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.Eventually(t, func() bool { return q.Healthy() != nil }, longTTL/2, pollTick, "after %v", time.Since(began))
}

// Whoever asks for the state of the nodes gets it as it is now.
func TestNodesAreTriedWhenTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	q := gatedURLs(t, s.URLs(), redlock.WithTTL(8*longTTL), redlock.WithMaxTTL(8*longTTL))
	require.NoError(t, s.hold(q, "before").Release(t.Context()))
	s.do([]string{"CONFIG", "SET", "maxmemory", "1"})
	for _, n := range q.Nodes(t.Context()) {
		require.True(t, n.Reachable)
		require.False(t, n.Votes)
		requireCondition(t, n.Err, n.Node, redlock.ConditionOutOfMemory)
	}
	require.ErrorIs(t, q.Healthy(), redlock.ErrNoQuorum)
}
