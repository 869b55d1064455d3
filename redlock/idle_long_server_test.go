//go:build long

package redlock_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

// A server that closes connections which are idle (timeout) is well: nothing is said of it, also if
// the next request finds its connection closed.
func TestIdleConnectionsThatAreClosedAreNoOutage(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3, valkeytest.WithArgs("--timeout", "1"))
	var log lockedBuffer
	q := s.gated(redlock.WithTTL(longTTL), logTo(&log))
	for range 3 {
		require.Eventually(t, func() bool {
			for i := range s.Nodes() {
				if s.info(i, "connected_clients") != "1" { // which asks
					return false
				}
			}
			return true
		}, 2*longTTL, 10*pollTick, "idle connections are not closed, so this tests nothing")
		l, err := tryUntilAnswered(t, q, "key")
		require.NoError(t, err)
		require.NoError(t, l.Release(t.Context()))
	}
	require.NotContains(t, log.String(), "failing")
	require.NotContains(t, log.String(), "answers again")

	s.kill(0)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "node failing") }, 2*longTTL, pollTick, "it is dead")
}
