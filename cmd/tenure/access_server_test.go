package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// looking are command lines that only look.
var looking = [][]string{{"status"}, {"nodes"}, {"jobs"}, {"jobs", "report"}, {"runs", "report"}, {"elections"}, {"elections", "poller"},
	{"holder", "--election", "poller"}, {"orders"}}

// ordering are command lines that give an order.
var ordering = [][]string{{"pause", "report", "--why", "y"}, {"resume", "report", "--why", "y"}, {"run-now", "report", "--why", "y"},
	{"run", "key", "--try", "--", "true"}}

// saysNothingOfTheCluster requires that a user who may not know how it is hears nothing of it.
func saysNothingOfTheCluster(t *testing.T, got called) {
	t.Helper()
	for _, untrue := range []string{"no lease is", "nodes vote,", "no replica", "no job", "No replica", "no quorum", "No order", "nobody", "delete"} {
		require.NotContains(t, got.out+got.err, untrue)
	}
}

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
	reader.reads("3 of 3 nodes vote, as replicas say: this user may not ask the nodes.", "status")
	status := sees(reader, func(d statusDocument) bool { return *d.Replicas == 1 && *d.Jobs == 4 }, "status")
	require.Nil(t, status.Nodes.Spare)
	require.Equal(t, 3, status.Nodes.Hidden)
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

// Where one node of three refuses a user, the others tell.
func TestOneNodeThatRefuses(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	use(t, f.URLs())
	urls := f.URLs()
	urls[0] = "valkey://nobody:wrong@" + f.Node(0).Addr()
	s := &story{t, append(nodesAt(urls...), "TENURE_NODE_TIMEOUT=1s")}
	s.reads("2 of 3 nodes vote; none more may fail.", "status")
	s.reads(f.Node(0).Addr()+": refuses this user, who may not know whether it votes: noauth", "status")
}
