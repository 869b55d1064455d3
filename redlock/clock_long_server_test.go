//go:build long

package redlock_test

import (
	"strings"
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

// A clock that jumps backward lets keys live longer, and one that is off by less than leases allow
// for endangers none.
func TestClockThatEndangersNobody(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		jump time.Duration
		says string
	}{
		{"backward", -time.Minute, "jumped backward"},
		{"slightly forward", 5 * time.Millisecond, ""},
		{"slightly backward", -5 * time.Millisecond, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startServers(t, 2, valkeytest.WithClock())
			var log lockedBuffer
			q := s.gated(redlock.WithoutRestartGate(), redlock.WithClockSkew(time.Second), logTo(&log))
			s.watched(1)
			before := log.String()
			s.jump(test.jump, 0, 1)
			s.watched(2)
			require.NoError(t, q.Healthy())
			for i := range s.Nodes() {
				require.True(t, node(t, q, i).Votes)
			}
			_, err := q.TryAcquire(t.Context(), "key")
			require.NoError(t, err)
			after := strings.TrimPrefix(log.String(), before)
			if test.says == "" {
				require.Empty(t, after)
				return
			}
			require.Equal(t, 2, strings.Count(after, test.says), "a line a node: %s", after)
			require.Regexp(t, `by=(59\.9|1m0)`, after)
			require.Contains(t, after, s.Node(0).Addr())
		})
	}
}
