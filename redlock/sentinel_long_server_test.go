//go:build long

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// A Sentinel group is a node. The replica that it promotes has no vote until what it may lack is
// over.
func TestGateSentinelFailOver(t *testing.T) {
	t.Parallel()
	s := startAged(t, 4)
	s.follow(3, 0)
	url, failOver := s.sentinelOfAPair(0)

	var log lockedBuffer
	q := gatedURLs(t, []string{url, s.Node(1).URL(), s.Node(2).URL()}, redlock.WithTTL(longTTL), redlock.WithReplicas(), logTo(&log))
	require.True(t, node(t, q, 0).Votes)
	require.Equal(t, s.Node(0).Addr(), node(t, q, 0).Server)
	held, err := tryUntilAnswered(t, q, "key")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(s.locks(0)) > 0 }, patience, pollTick, "the group never granted")
	before := time.Now()
	failOver(3)
	require.Eventually(t, func() bool {
		n := q.Nodes(t.Context())[0]
		return n.Reachable && redlock.ErrorType(n.Err) == string(redlock.ConditionQuarantined)
	}, patientQuarantine-whole, pollTick, "the promoted replica is taken for its master")
	n := q.Nodes(t.Context())[0]
	require.Equal(t, s.Node(3).Addr(), n.Server)
	require.ErrorContains(t, n.Err, s.Node(3).Addr()+" was a replica and was promoted")
	require.Contains(t, log.String(), s.Node(3).Addr()+" was a replica and was promoted")
	require.GreaterOrEqual(t, requireVotes(t, q, 0, patience).Sub(before), patientQuarantine-time.Second)
	require.NoError(t, held.Err())
	s.kill(1)
	_, err = q.Acquire(t.Context(), "other")
	require.NoError(t, err, "its vote counts")
}
