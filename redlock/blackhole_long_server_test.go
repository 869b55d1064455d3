//go:build long

package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Whoever waits for a node that drops packets waits for the node timeout, which is above the
// bounds of what does not. Nodes that answer have as long, on a busy machine too.
func TestTrap15And22OpenDoesNotWaitForABlackHole(t *testing.T) {
	t.Parallel()
	const nodeTimeout = serverTTL
	opts := append(quietOptions(), redlock.WithTTL(4*nodeTimeout), redlock.WithNodeTimeout(nodeTimeout))
	s := startServers(t, 2)
	urls := append(s.URLs(), "valkey://"+blackHole(t))
	var q *redlock.Quorum
	var err error
	require.Less(t, took(func() { q, err = redlock.Open(urls, opts...) }), nodeTimeout/4)
	require.NoError(t, err)
	var l *redlock.Lease
	require.Eventually(t, func() bool { // the connections may not be there yet
		require.Less(t, took(func() { l, err = q.TryAcquire(t.Context(), "key") }), nodeTimeout/2)
		return err == nil
	}, longTTL, pollTick)
	s.staysHeld(l, 5*nodeTimeout)
	var status []redlock.NodeStatus
	require.Eventually(t, func() bool {
		status = q.Nodes(t.Context())
		return status[0].Reachable && status[1].Reachable
	}, patience, pollTick)
	require.False(t, status[2].Reachable)
	require.ErrorIs(t, status[2].Err, redlock.ErrTimeout)
	require.Less(t, took(func() { err = l.Release(t.Context()) }), nodeTimeout/2)
	require.NoError(t, err)
	// Twice the time after which a connection is given up, which is two node timeouts here.
	require.Less(t, took(func() { require.NoError(t, q.Close()) }), 5*nodeTimeout)
}
