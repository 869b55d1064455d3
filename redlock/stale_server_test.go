package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// frozenFor is longer than a TTL. What lies in a frozen server's sockets does not age: the server
// carries it out when it goes on, with a full TTL.
const frozenFor = 2 * serverTTL

// Field: a request abandoned at its timeout ran 2 s later with a full TTL.
func TestTrap17AcquireThatSleptPastItsTTLIsUndone(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open()
	s.freeze(0, 1)
	_, err := q.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrTimeout)
	s.requireUnread(0, 1)
	<-time.After(frozenFor)
	s.thaw(0, 1)
	s.requireGranted(0, 1)
	s.requireFree(serverTTL/2, "nobody holds the key, and nobody can have it for a whole TTL")
}

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
