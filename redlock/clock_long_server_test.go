//go:build long

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// A jump is no less one without the restart gate.
func TestClockJumpWithoutTheRestartGate(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3, valkeytest.WithClock())
	q := s.gated(redlock.WithoutRestartGate())
	l := s.hold(q, "key")
	require.NoError(t, l.Release(t.Context()))
	jumped := time.Now()
	s.jump(time.Minute, 0, 1, 2)
	_, err := q.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	g := receive(t, s.acquire(q, "key"), serverQuarantine+whole, "they never vote again")
	require.NoError(t, g.err)
	require.GreaterOrEqual(t, g.at.Sub(jumped), serverQuarantine)
}

// A Quorum that nobody uses looks at the clocks about once a TTL.
func TestClockJumpIsNoticedByAnIdleQuorum(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	var log lockedBuffer
	q := s.gated(logTo(&log))
	s.watched(1)
	require.NoError(t, q.Healthy())
	require.NotRegexp(t, "level=(WARN|ERROR)", log.String())

	jumped := time.Now()
	s.jump(time.Minute, 0, 1)
	require.Eventually(t, func() bool { return q.Healthy() != nil }, 2*serverTTL, pollTick, "nobody looks")
	noticed := time.Now()
	for i := range 2 {
		ce := requireCondition(t, errorOf(t, q.Healthy(), s.Node(i).Addr()), s.Node(i).Addr(), redlock.ConditionClockJumped)
		require.Regexp(t, "jumped forward by (59.9|1m0)", ce.Error())
		require.WithinRange(t, node(t, q, i).QuarantinedUntil, jumped.Add(serverQuarantine), noticed.Add(serverQuarantine))
	}
	for i := range 2 {
		voted := requireVotes(t, q, i, serverQuarantine+whole)
		require.GreaterOrEqual(t, voted.Sub(jumped), serverQuarantine, "it may vote when what expired early would have expired")
	}
	g := receive(t, s.acquire(q, "key"), serverQuarantine+whole, "nobody can acquire")
	require.NoError(t, g.err)
}
