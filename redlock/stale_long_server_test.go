//go:build long

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// The extensions of a lost lease put its key back when the servers go on. Its release takes it away
// again.
func TestTrap17ExtensionThatSleptPastItsTTLIsUndone(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	l := s.hold(s.open(), "key")
	s.freeze(0, 1)
	s.requireLost(l, redlock.LostDeadline)
	require.ErrorIs(t, l.Release(t.Context()), redlock.ErrLost)
	<-time.After(frozenFor)
	s.thaw(0, 1)
	require.Eventually(t, func() bool { return s.Node(0).CommandStats(t)["evalsha"] > 0 }, longTTL, pollTick)
	s.requireFree(serverTTL/2, "a lease that was lost and released blocks the key")
}
