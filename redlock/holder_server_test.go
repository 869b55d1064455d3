package redlock_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// A key that only a minority has is nobody's, and one that another program wrote is reported as it
// is.
func TestHolderNeedsAQuorum(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open()
	s.squat("key", longTTL, 0)
	_, err := q.Holder(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrNotHeld)
	s.do([]string{"SET", lockKey("key"), "somebody's own format"})
	h, err := q.Holder(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, "somebody's own format", h.Identity)
}

func TestNodesTellTheirState(t *testing.T) {
	t.Parallel()
	s := startServers(t, 5)
	host, port, err := net.SplitHostPort(s.Node(0).Addr())
	require.NoError(t, err)
	s.do([]string{"REPLICAOF", host, port}, 1)
	q := s.open(redlock.WithReplicas(), redlock.WithTTL(longTTL), redlock.WithNodeTimeout(serverTTL))
	s.freeze(2)
	s.kill(3)
	var nodes []redlock.NodeStatus
	whole := took(func() { nodes = q.Nodes(t.Context()) }) // with the frozen node's timeout
	require.Len(t, nodes, 5)
	for i, n := range nodes {
		require.Equal(t, s.Node(i).Addr(), n.Node)
	}
	for _, i := range []int{0, 4} {
		require.True(t, nodes[i].Reachable)
		require.Equal(t, "master", nodes[i].Role)
		require.Empty(t, nodes[i].Warnings)
		require.NoError(t, nodes[i].Err)
		require.Positive(t, nodes[i].Latency)
		require.Less(t, nodes[i].Latency, whole)
	}
	require.True(t, nodes[1].Reachable)
	require.Equal(t, "slave", nodes[1].Role)
	require.ErrorContains(t, nodes[1].Err, "replica")
	require.Empty(t, nodes[1].Warnings, "it is said once")
	require.False(t, nodes[2].Reachable)
	require.Equal(t, "timeout", redlock.ErrorType(nodes[2].Err))
	require.False(t, nodes[3].Reachable)
	require.Equal(t, "connection", redlock.ErrorType(nodes[3].Err))
	require.ErrorContains(t, nodes[3].Err, s.Node(3).Addr())

	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	require.Less(t, took(func() { nodes = q.Nodes(ctx) }), whole, "it waits for the frozen one")
	require.Len(t, nodes, 5)
}

// A replica does not take writes, so its vote is missing and its answer says why.
func TestReplicaHasNoVote(t *testing.T) {
	t.Parallel()
	s := startServers(t, 2)
	host, port, err := net.SplitHostPort(s.Node(0).Addr())
	require.NoError(t, err)
	s.do([]string{"REPLICAOF", host, port}, 1)
	_, err = tryUntilAnswered(t, s.open(redlock.WithReplicas()), "key")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorContains(t, err, "its role is \"slave\", its master "+s.Node(0).Addr())
	var ne *redlock.NodeError
	require.ErrorAs(t, err, &ne)
	require.Equal(t, s.Node(1).Addr(), ne.Node)
	require.Equal(t, "replica", ne.ErrorType())
}
