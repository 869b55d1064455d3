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
	const sleptTTL = 4 * serverTTL
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(sleptTTL))
	entered(t, q)
	s.freeze(0, 1)
	_, err := q.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrTimeout)
	s.requireUnread(0, 1)
	<-time.After(sleptTTL + serverTTL/4)
	s.thaw(0, 1)
	s.requireGranted(0, 1)
	s.requireFree(patience, "nobody holds the key")
	for _, i := range s.all() {
		require.Equal(t, "0", s.info(i, "expired_keys"), "nobody could have it for a whole TTL")
	}
}
