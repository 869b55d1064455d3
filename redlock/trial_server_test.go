package redlock_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// serverVotes is a tracer that keeps the last that it was told of each node, and how often that was
// news. A look that took too long, as it may on a busy machine, is none.
type serverVotes struct {
	rounds
	mu   sync.Mutex
	last map[string]redlock.TraceVoteData
	told int
}

func (v *serverVotes) TraceVote(_ context.Context, data redlock.TraceVoteData) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == nil {
		v.last = make(map[string]redlock.TraceVoteData)
	}
	if errors.Is(data.Err, redlock.ErrTimeout) {
		return
	}
	if was := v.last[data.Node]; was.Votes != data.Votes || redlock.ErrorType(was.Err) != redlock.ErrorType(data.Err) {
		v.told++
	}
	v.last[data.Node] = data
}

func (v *serverVotes) of(node string) (redlock.TraceVoteData, int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last[node], v.told
}

// userRules are what the user of withUser may do, in the end.
func userRules(t *testing.T) []string {
	return append([]string{"on", ">p4ss", "resetchannels", "~tenure:*", "&tenure:*"}, advised(t)...)
}

// all reports whether what was told last of each server is so.
func all(s *servers, told *serverVotes, is func(redlock.TraceVoteData) bool) bool {
	return !slices.ContainsFunc(s.Nodes(), func(n *valkeytest.Node) bool {
		data, _ := told.of(n.Addr())
		return !is(data)
	})
}

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
