package tenureotel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A node that was restarted is in quarantine for as long as leases may last that it forgot; one
// that is dead does not answer for as long as it is.
func TestQuarantinedNodeShowsUntilItVotesAgain(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet, redlock.WithTracer(tel), redlock.WithMaxTTL(time.Minute)) // a quarantine of a minute
		state := func() (all []float64) {
			for _, node := range []string{"node-1.pipe", "node-2.pipe", "node-3.pipe", "node-4.pipe", "node-5.pipe"} {
				points := tel.matching(t, "tenure.node.voting", "server.address", node, "server.port", "6379")
				require.Len(t, points, 1, "it has one state")
				all = append(all, points[0].value)
			}
			return all
		}
		require.Equal(t, []float64{1, 1, 1, 1, 1}, state(), "all nodes are there from the beginning")
		require.NoError(t, fleet.Node(1).Restart(false))
		require.NoError(t, fleet.Node(3).Kill())
		pass(2 * ttl)
		require.Equal(t, []float64{1, 0, 1, 0, 1}, state())
		restarted := []string{"server.address", "node-2.pipe"}
		require.Zero(t, tel.value(t, "tenure.node.voting", append(restarted, "error.type", "quarantined")...))
		pass(90 * time.Second)
		require.EqualValues(t, 1, tel.value(t, "tenure.node.voting", restarted...))
		require.Equal(t, []float64{1, 1, 1, 0, 1}, state())
		require.Zero(t, tel.value(t, "tenure.node.voting", "server.address", "node-4.pipe", "error.type", "connection"))
		require.NoError(t, fleet.Node(1).Restart(false))
		pass(2 * ttl)
		require.Equal(t, []float64{1, 0, 1, 0, 1}, state())
		require.NoError(t, q.Close())
		require.Empty(t, tel.points(t, "tenure.node.voting"), "nobody asks any more")
	})
}

// Of a node that several Quorums of a process use, the worst is told that one of them knows, in
// whatever order they told it.
func TestNodeOfSeveralQuorumsShowsTheWorst(t *testing.T) {
	tel := newTelemetry(t)
	one, two := new(redlock.Quorum), new(redlock.Quorum)
	condition := func(c redlock.Condition) error { return &redlock.ConditionError{Condition: c} }
	well := redlock.TraceVoteData{Votes: true}
	warned := redlock.TraceVoteData{Votes: true, Warning: condition(redlock.ConditionClockWrong)}
	moreWarned := redlock.TraceVoteData{Votes: true, Warning: condition(redlock.ConditionSeveralServers)}
	silent := redlock.TraceVoteData{Err: redlock.ErrTimeout}
	silentToo := redlock.TraceVoteData{Err: redlock.ErrTimeout, Warning: condition(redlock.ConditionAnotherList)}
	full := redlock.TraceVoteData{Err: condition(redlock.ConditionOutOfMemory)}
	for _, test := range []struct {
		worse, better redlock.TraceVoteData
		voting        float64
		want          string
	}{
		{silent, well, 0, "timeout"},
		{silent, warned, 0, "timeout"},
		{silentToo, well, 0, "timeout"},
		{warned, well, 1, "clock_wrong"},
		{warned, moreWarned, 1, "clock_wrong"},
		{full, silent, 0, "oom"},
		{well, well, 1, ""},
	} {
		for _, told := range [][]redlock.TraceVoteData{{test.worse, test.better}, {test.better, test.worse}} {
			for i, quorum := range []*redlock.Quorum{one, two} {
				told[i].Node, told[i].Quorum = "node:6379", quorum
				tel.TraceVote(t.Context(), told[i])
			}
			points := tel.points(t, "tenure.node.voting")
			require.Len(t, points, 1)
			require.Equal(t, test.voting, points[0].value, test.want)
			why, _ := points[0].attributes.Value("error.type")
			require.Equal(t, test.want, why.AsString())
		}
	}
}

// A Quorum that was closed takes nothing of the others away: a node shows for as long as one uses
// it.
func TestNodeShowsUntilItsLastQuorumIsClosed(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		one := open(t, fleet, redlock.WithTracer(tel), redlock.WithPrefix("one"))
		two := open(t, fleet, redlock.WithTracer(tel), redlock.WithPrefix("two"))
		require.NoError(t, one.Close())
		points := tel.points(t, "tenure.node.voting")
		require.Len(t, points, 5)
		for _, p := range points {
			require.EqualValues(t, 1, p.value)
			require.False(t, p.attributes.HasValue("error.type"))
		}
		require.NoError(t, two.Close())
		require.Empty(t, tel.points(t, "tenure.node.voting"))
	})
}
