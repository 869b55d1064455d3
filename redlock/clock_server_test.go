package redlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// jump steps the clocks of nodes.
func (s *servers) jump(d time.Duration, nodes ...int) {
	s.t.Helper()
	for _, i := range nodes {
		require.NoError(s.t, s.Node(i).JumpClock(d))
	}
}

// A server lets keys expire by its wall clock. When that jumps forward, what it grants may still be
// somebody's.
func TestClockJumpHelpsNobodyToASecondLease(t *testing.T) {
	t.Parallel()
	const ttl = 3 * longTTL
	s := startAged(t, 3)
	var log lockedBuffer
	first, second := s.gated(redlock.WithTTL(ttl)), s.gated(redlock.WithTTL(ttl), logTo(&log))
	held := s.hold(first, "key", redlock.WithoutAutoExtend())
	s.jump(ttl+time.Second, 1, 2)
	require.Empty(t, s.locks(1))
	require.Empty(t, s.locks(2))

	asked := time.Now()
	_, err := second.TryAcquire(t.Context(), "key")
	require.NoError(t, held.Err())
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	const quarantine = 32 * time.Second // 30.001 s × 1.01 + 2 ms, rounded up, and one
	for i := 1; i <= 2; i++ {
		addr := s.Node(i).Addr()
		n := node(t, second, i)
		for _, err := range []error{errorOf(t, err, addr), n.Err} {
			ce := requireCondition(t, err, addr, redlock.ConditionClockJumped)
			require.Regexp(t, "jumped forward by (30.9|31)", ce.Error())
			require.ErrorContains(t, ce, "keep its clock steady")
		}
		require.False(t, n.Votes)
		require.WithinRange(t, n.QuarantinedUntil, asked.Add(quarantine-time.Second), time.Now().Add(quarantine+time.Second))
		s.requireFreeOn(i, "what it granted is released")
	}
	require.True(t, node(t, second, 0).Votes)
	require.Equal(t, 2, strings.Count(log.String(), "node does not vote"), "%s", &log)
	_, err = second.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)

	// The limit of it: who does not know what the clocks showed before.
	l, err := s.gated(redlock.WithTTL(ttl)).TryAcquire(t.Context(), "key")
	require.NoError(t, err, "the keys have not expired early, so this tests nothing")
	require.NoError(t, l.Err())
	require.NoError(t, held.Err())
}

// A minority's jump costs nobody anything: the next extension puts the key back.
func TestClockJumpOfAMinorityKeepsTheLease(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	q := s.gated()
	held := s.hold(q, "key")
	s.jump(time.Hour, 1)
	require.Empty(t, s.locks(1))
	require.Eventually(t, func() bool { return len(s.locks(1)) > 0 }, serverTTL, pollTick)
	s.staysHeld(held, serverTTL)
	_, err := s.gated().TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrHeld)
}

// watched waits until every node was asked for its time so often.
func (s *servers) watched(times int64) {
	s.t.Helper()
	before := make([]int64, len(s.Nodes()))
	for i, n := range s.Nodes() {
		before[i] = n.CommandStats(s.t)["time"]
	}
	for i, n := range s.Nodes() {
		require.Eventually(s.t, func() bool { return n.CommandStats(s.t)["time"] >= before[i]+times },
			time.Duration(times+2)*serverTTL, pollTick, "the clock is not looked at")
	}
}
