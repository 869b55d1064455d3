package redlock_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

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
