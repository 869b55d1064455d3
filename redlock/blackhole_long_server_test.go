//go:build long

package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

func TestTrap15And22OpenDoesNotWaitForABlackHole(t *testing.T) {
	t.Parallel()
	s := startServers(t, 2)
	urls := append(s.URLs(), "valkey://"+blackHole(t))
	var q *redlock.Quorum
	var err error
	require.Less(t, took(func() { q, err = redlock.Open(urls, quietOptions()...) }), serverTTL/4)
	require.NoError(t, err)
	var l *redlock.Lease
	require.Eventually(t, func() bool { // the connections may not be there yet
		require.Less(t, took(func() { l, err = q.TryAcquire(t.Context(), "key") }), serverTTL/2)
		return err == nil
	}, longTTL, pollTick)
	s.staysHeld(l, 3*serverTTL/2)
	var status []redlock.NodeStatus
	require.Eventually(t, func() bool {
		status = q.Nodes(t.Context())
		return status[0].Reachable && status[1].Reachable
	}, patience, pollTick)
	require.False(t, status[2].Reachable)
	require.ErrorIs(t, status[2].Err, redlock.ErrTimeout)
	require.Less(t, took(func() { err = l.Release(t.Context()) }), serverTTL/2)
	require.NoError(t, err)
	require.Less(t, took(func() { require.NoError(t, q.Close()) }), serverTTL)
}
