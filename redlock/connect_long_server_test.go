//go:build long

package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Field: a retried SET was granted by a restarted, empty server.
func TestTrap18AcquireIsNotRepeatedOnARestartedServer(t *testing.T) {
	t.Parallel()
	t.Run("minority", func(t *testing.T) {
		t.Parallel()
		s := startServers(t, 3)
		q := s.open(redlock.WithTTL(longTTL))
		s.enter(q)
		s.freeze(2)
		l, err := q.TryAcquire(t.Context(), "key", redlock.WithoutAutoExtend())
		require.NoError(t, err)
		s.requireUnread(2)
		require.NoError(t, s.Node(2).Restart(false))
		requireUnasked(s, q, 2)
		require.Empty(t, s.locks(2))
		require.NoError(t, l.Err())
	})
	t.Run("quorum", func(t *testing.T) {
		t.Parallel()
		s := startServers(t, 3)
		q := s.open(redlock.WithTTL(longTTL))
		s.enter(q)
		s.freeze(1, 2)
		granted := tryAcquire(t.Context(), q, "key")
		s.requireUnread(1, 2)
		s.kill(1, 2)
		g := receive(t, granted, longTTL/4, "TryAcquire hangs")
		require.ErrorIs(t, g.err, redlock.ErrNoQuorum)
		require.NoError(t, s.Node(1).Restart(false))
		require.NoError(t, s.Node(2).Restart(false))
		requireUnasked(s, q, 1, 2)
		s.requireFree(longTTL/4, "a failed attempt left a key")
	})
}
