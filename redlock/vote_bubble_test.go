package redlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// votes is a tracer that keeps what it is told of nodes.
type votes struct {
	acquisitions
	mu   sync.Mutex
	told map[string][]redlock.TraceVoteData
}

func (v *votes) TraceVote(_ context.Context, data redlock.TraceVoteData) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.told[data.Node] = append(v.told[data.Node], data)
}

// take returns what was told of a node since the last time.
func (v *votes) take(node string) []redlock.TraceVoteData {
	v.mu.Lock()
	defer v.mu.Unlock()
	told := v.told[node]
	delete(v.told, node)
	return told
}

func TestVotesAreTold(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		v := &votes{told: make(map[string][]redlock.TraceVoteData)}
		q := open(t, fleet, redlock.WithTracer(v), redlock.WithMaxTTL(ttl))
		q.Nodes(t.Context())
		time.Sleep(2 * ttl)
		synctest.Wait()
		for i := range 3 {
			told := v.take(q.Nodes(t.Context())[i].Node)
			require.Len(t, told, 2)
			require.False(t, told[0].Votes)
			require.Error(t, told[0].Err, "it has not been asked yet")
			require.Equal(t, redlock.TraceVoteData{Quorum: q, Node: told[0].Node, Votes: true}, told[1])
		}

		node := q.Nodes(t.Context())[1].Node
		restart(t, fleet, 1)
		restarted := time.Now()
		time.Sleep(2 * ttl)
		synctest.Wait()
		told := v.take(node)
		require.NotEmpty(t, told)
		last := told[len(told)-1]
		require.False(t, last.Votes)
		require.WithinRange(t, last.Until, restarted.Add(ttl), restarted.Add(2*quarantine))
		var why *redlock.ConditionError
		require.ErrorAs(t, last.Err, &why)
		require.Equal(t, redlock.ConditionQuarantined, why.Condition)
		for _, other := range []int{0, 2} {
			require.Empty(t, v.take(q.Nodes(t.Context())[other].Node), "nothing has changed there")
		}

		time.Sleep(2 * quarantine)
		synctest.Wait()
		told = v.take(node)
		require.NotEmpty(t, told)
		require.Equal(t, redlock.TraceVoteData{Quorum: q, Node: node, Votes: true}, told[len(told)-1])

		require.NoError(t, q.Close())
		told = v.take(node)
		require.Len(t, told, 1)
		require.False(t, told[0].Votes)
		require.Zero(t, told[0].Until)
		require.True(t, errors.Is(told[0].Err, redlock.ErrClosed))
	})
}

// A node that does not answer has no vote, also where nobody asks for a lease; one that answers
// again within the time for which others wait for it has its vote at once.
func TestSilentNodeHasNoVote(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		v := &votes{told: make(map[string][]redlock.TraceVoteData)}
		q := open(t, fleet, redlock.WithTracer(v))
		pass := func() {
			time.Sleep(2 * ttl)
			synctest.Wait()
		}
		pass()
		dead, frozen, well := q.Nodes(t.Context())[0].Node, q.Nodes(t.Context())[1].Node, q.Nodes(t.Context())[2].Node
		for _, node := range []string{dead, frozen, well} {
			v.take(node)
		}
		require.NoError(t, fleet.Node(0).Kill())
		require.NoError(t, fleet.Node(1).Freeze())
		pass()
		told := v.take(dead)
		require.NotEmpty(t, told)
		last := told[len(told)-1]
		require.False(t, last.Votes)
		require.Zero(t, last.Until)
		require.Equal(t, "connection", (&redlock.NodeError{Err: last.Err}).ErrorType())
		told = v.take(frozen)
		require.NotEmpty(t, told)
		last = told[len(told)-1]
		require.False(t, last.Votes)
		require.ErrorIs(t, last.Err, redlock.ErrTimeout)
		require.Empty(t, v.take(well))
		defer board.Of(q).Report(func() board.Report { return board.Report{} })()
		var card bulletin.Process
		require.Eventually(t, func() bool {
			for c := range board.Of(q).Cards(t.Context(), bulletin.Processes) {
				card, _ = bulletin.ParseProcess(c.Text)
			}
			return len(card.Nodes) == 3
		}, time.Minute, time.Second)
		require.Equal(t, bulletin.NodeSeen{Node: dead, Why: "connection"}, card.Nodes[0])
		require.Equal(t, bulletin.NodeSeen{Node: frozen, Why: "timeout"}, card.Nodes[1])
		require.True(t, card.Nodes[2].Votes)

		require.NoError(t, fleet.Node(1).Thaw())
		pass()
		told = v.take(frozen)
		require.NotEmpty(t, told)
		require.True(t, told[len(told)-1].Votes)
		require.NoError(t, fleet.Node(0).Restart(false))
		time.Sleep(2 * quarantine)
		synctest.Wait()
		told = v.take(dead)
		require.NotEmpty(t, told)
		require.True(t, told[len(told)-1].Votes)
	})
}
