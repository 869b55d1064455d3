//go:build long

package redlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// A server that answers what it is asked about itself, and holds back what may write, fails for as
// long as it does: that is said once, with what it may be, and no vote comes and goes with its
// answers. Once it goes on it is well.
func TestServersThatHoldWritesBack(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	var log lockedBuffer
	q := s.gated(logTo(&log))
	s.hold(q, "key")
	s.do([]string{"CLIENT", "PAUSE", "600000", "WRITE"})
	require.Eventually(t, func() bool { return strings.Count(log.String(), "CLIENT UNPAUSE") >= 3 }, longTTL, pollTick, "%s", &log)
	require.Never(t, func() bool { return q.Healthy() == nil }, 5*time.Second, pollTick, "no quorum can be had")
	require.Equal(t, 6, strings.Count(log.String(), "failing"), "that it fails, and then why: %s", &log)
	require.Equal(t, 3, strings.Count(log.String(), "CLIENT UNPAUSE"), "%s", &log)
	require.NotContains(t, log.String(), "answers again")
	for _, n := range q.Nodes(t.Context()) {
		require.False(t, n.Votes)
		require.ErrorIs(t, n.Err, redlock.ErrTimeout)
		require.ErrorContains(t, n.Err, "CLIENT UNPAUSE")
	}
	require.ErrorContains(t, q.Healthy(), "CLIENT UNPAUSE")
	s.do([]string{"CLIENT", "UNPAUSE"})
	require.Eventually(t, func() bool { return q.Healthy() == nil }, longTTL/2, pollTick, "%s", &log)
	require.Eventually(t, func() bool { return strings.Count(log.String(), "answers again") == 3 }, longTTL/2, pollTick, "%s", &log)
}
