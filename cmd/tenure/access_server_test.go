package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/view"
)

// looking are command lines that only look.
var looking = [][]string{{"status"}, {"nodes"}, {"jobs"}, {"jobs", "report"}, {"runs", "report"}, {"runs", "--failed"}, {"elections"}, {"elections", "poller"},
	{"holder", "--election", "poller"}, {"orders"}}

// ordering are command lines that give an order.
var ordering = [][]string{{"pause", "report", "--force", "--why", "y"}, {"resume", "report", "--why", "y"}, {"run-now", "report", "--why", "y"},
	{"run", "key", "--try", "--", "true"}}

// saysNothingOfTheCluster requires that a user who may not know how it is hears nothing of it.
func saysNothingOfTheCluster(t *testing.T, got called) {
	t.Helper()
	for _, untrue := range []string{"no lease is", "nodes vote,", "no replica", "no job", "No replica", "no quorum", "No order", "nobody", "delete"} {
		require.NotContains(t, got.out+got.err, untrue)
	}
}

// Where one node of three refuses a user, the others tell.
func TestOneNodeThatRefuses(t *testing.T) {
	t.Parallel()
	f := startServers(t, 3)
	use(t, f.URLs())
	s := &story{t, append(nodesAt("valkey://nobody:wrong@"+f.Node(0).Addr(), f.URLs()[1], f.URLs()[2]), "TENURE_NODE_TIMEOUT=1s")}
	s.reads("2 of 3 nodes vote; none more may fail.", "status")
	s.reads(f.Node(0).Addr()+": refuses this user, who may not know whether it votes: noauth", "status")
	d := nodesDocument{Nodes: []view.Node{{Node: "a", ThisProcess: true, Error: "node a: acquire: noperm: x", SeenBy: []view.Seen{{}}}}}
	require.Equal(t, []string{"a: votes for no replica: noperm: x"}, d.problems())
}
