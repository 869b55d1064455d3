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

// Field: at maxmemory SET fails, and leases that were extended with it were lost.
func TestTrap13FullServersKeepTheLease(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open()
	l := s.hold(q, "key")
	s.do([]string{"CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "1mb"})
	for _, n := range s.Nodes() {
		require.ErrorContains(t, n.Do(t, "SET", "other", "value").Error(), "OOM", "the server is not full")
	}
	s.staysHeld(l, 5*serverTTL/2)
	require.NoError(t, l.Extend(t.Context()))

	_, err := q.TryAcquire(t.Context(), "another")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	var qe *redlock.QuorumError
	require.ErrorAs(t, err, &qe)
	require.GreaterOrEqual(t, len(qe.Errs), 2)
	for _, ne := range qe.Errs {
		require.Equal(t, "oom", ne.ErrorType())
		require.ErrorContains(t, ne, "OOM")
	}
	require.NoError(t, l.Release(t.Context()))
	s.requireFree(serverTTL/2, "a full server kept what was released")
}
