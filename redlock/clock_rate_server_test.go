package redlock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// A clock that runs fast, and is looked at often, moves by little from one look to the next. All
// the same a lease must not expire early unseen.
func TestClockThatRunsFastIsNoticed(t *testing.T) {
	t.Parallel()
	const ttl = longTTL
	const step = 1500 * time.Microsecond // less than the allowance of 2 ms
	s := startAged(t, 3)
	first, second := s.gated(redlock.WithTTL(ttl)), s.gated(redlock.WithTTL(ttl))
	held := s.hold(first, "key", redlock.WithoutAutoExtend())
	for range (ttl + time.Second) / step {
		s.jump(step, s.all()...)
		_, err := second.TryAcquire(t.Context(), "key")
		require.NoError(t, held.Err(), "the machine is too slow for this test")
		require.Error(t, err, "a second lease, after %v", s.Node(0).ClockOffset())
		if second.Healthy() != nil {
			return
		}
	}
	require.Fail(t, "nothing was noticed")
}

// A clock that is set back to before the server's start gives it a negative uptime. It is no
// younger for that.
func TestClockBeforeTheServersStart(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	q := s.gated()
	s.jump(-2*day, s.all()...)
	require.Eventually(t, func() bool { return strings.HasPrefix(s.info(0, "uptime_in_seconds"), "-") }, longTTL, pollTick)
	for i := range s.Nodes() {
		n := node(t, q, i)
		require.True(t, n.Votes)
		require.Empty(t, n.Warnings)
	}
	s.do([]string{"SCRIPT", "FLUSH"})
	g := receive(t, s.acquire(q, "key"), serverQuarantine+whole, "they never vote again")
	require.NoError(t, g.err)
}
