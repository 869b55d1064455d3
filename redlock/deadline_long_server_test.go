//go:build long

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

func TestTrap21FrozenQuorumGivesTheKeyToNobody(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	held := s.hold(s.open(), "key")
	granted := s.wait(s.open(), "key")
	s.freeze(0, 1)
	ended := s.requireLost(held, redlock.LostDeadline)
	select {
	case <-granted:
		require.Fail(t, "granted without a quorum")
	case <-time.After(3 * serverTTL / 2):
	}
	thawed := time.Now()
	s.thaw(0, 1)
	g := receive(t, granted, 3*serverTTL, "nobody got the key after the servers came back")
	require.NoError(t, g.err)
	require.True(t, g.at.After(thawed))
	require.True(t, g.at.After(ended))
	require.Greater(t, g.lease.FencingToken(), held.FencingToken())
}
