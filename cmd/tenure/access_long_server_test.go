//go:build long

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a user may not see is told as his missing right or his wrong password, and never as the
// state of the cluster, which is well here.
func TestWhoMayNotKnowHearsNothingOfTheCluster(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	replica(t, f)
	command(t, f.Nodes(), append([]string{"ACL", "SETUSER", "reader", "reset", "on", ">p4ss"}, readerRights(t, "tenure")...)...)
	recipe(t, f, "resetkeys", "resetchannels", "~billing:*", "&billing:*")
	environ := func(user string) []string { return append(nodesAt(as(f, user)...), "TENURE_NODE_TIMEOUT=1s") }

	reader := &story{t, environ("reader:p4ss")}
	reader.reads("3 of 3 nodes vote, as replicas say: the user of this process may not ask the nodes.", "status")
	status := sees(reader, func(d statusDocument) bool { return *d.Replicas == 1 && d.Jobs.Total == 4 }, "status")
	require.Nil(t, status.Quorum.Spare)
	require.Equal(t, 3, status.Quorum.Hidden)
	for _, n := range ok[nodesDocument](reader, "nodes").Nodes {
		require.Nil(t, n.Votes)
		require.True(t, n.SeenBy[0].Votes)
	}
	reader.reads("it votes for 1 of 1 replica", "nodes")
	for _, args := range looking {
		s := reader.text(args...)
		require.NotContains(t, s, "no lease is", "%v", args)
	}
	for _, args := range ordering {
		require.Contains(t, reader.fails(exitDenied, args...), "the nodes refuse this user", "%v", args)
	}

	for user, why := range map[string]string{"billing:p4ss": "No permissions to access a key", "billing:wrong": "WRONGPASS"} {
		s := &story{t, environ(user)}
		for _, args := range append(looking, ordering...) {
			got := call(t, s.environ, args...)
			require.Equal(t, exitDenied, got.code, "%s: %v: %s%s", user, args, got.out, got.err)
			require.Contains(t, got.err, "the nodes refuse this user", "%v", args)
			require.Contains(t, got.err, why, "%v", args)
			require.Contains(t, got.err, "this says nothing of the cluster", "%v", args)
			saysNothingOfTheCluster(t, got)
		}
		got := call(t, s.environ, "doctor")
		require.Equal(t, exitFaults, got.code)
		saysNothingOfTheCluster(t, got)
	}

	// Of a cluster that is not well a reader hears.
	require.NoError(t, f.Node(0).Kill())
	require.NoError(t, f.Node(1).Kill())
	reader.fails(exitNoQuorum, "status")
	reader.fails(exitNoQuorum, "nodes")
	require.NotContains(t, reader.fails(exitNoQuorum, "holder", "--election", "poller"), "refuse this user")
}
