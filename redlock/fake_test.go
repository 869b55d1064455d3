package redlock

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// fakeNode is a node that keeps what is sent to it, and votes.
type fakeNode struct {
	link

	clock  *clock.Clock
	sent   []*node.Request
	at     []clock.Instant
	unsent bool         // what it answers from now on has not been sent
	status *node.Status // nil for one that votes
}

func (n *fakeNode) Send(r *node.Request) error {
	n.sent, n.at = append(n.sent, r), append(n.at, n.clock.Now())
	return nil
}

func (n *fakeNode) Status() *node.Status {
	if n.status != nil {
		return n.status
	}
	return &node.Status{}
}

func (n *fakeNode) Server() string { return "" }

// answer answers the request that was sent as the n-th, from 0.
func (n *fakeNode) answer(i int, a wire.Answer, err error) {
	r := n.sent[i]
	r.To.Answered(r, node.Answer{Answer: a, Err: err, Sent: n.at[i], Unsent: n.unsent})
}

// testQuorum is a Quorum of nodes that do nothing.
func testQuorum(nodes int) *Quorum {
	cfg, err := newConfig(nil)
	if err != nil {
		panic(err)
	}
	q := newQuorum(cfg, nodes)
	for i := range nodes {
		q.nodes = append(q.nodes, &member{q: q, index: i, addr: fmt.Sprintf("%c:1", 'a'+i), name: fmt.Sprintf("%c:1", 'a'+i), link: &fakeNode{clock: q.clock}})
	}
	q.roster = q.newRoster()
	return q
}

// fake returns a node of a testQuorum.
func (q *Quorum) fake(i int) *fakeNode { return q.nodes[i].link.(*fakeNode) }

// Enter has a process say that it uses its nodes, as the first lease has it do.
func Enter(q *Quorum) { q.roster.Enter(context.Background()) }

// Entered has it do so, and reports whether it counts.
func Entered(q *Quorum) bool {
	Enter(q)
	return q.roster.Admitted()
}

// refusing is a node that takes no requests.
type refusing struct{ fakeNode }

func (*refusing) Send(*node.Request) error { return node.ErrOverloaded }

// An operation is used again when its maker has dropped it and every node that was asked has
// answered, in whatever order that comes, and not before.
func TestOperationIsUsedAgainWhenAllHaveAnswered(t *testing.T) {
	for range 50 {
		q := testQuorum(5)
		q.nodes[4].link = &refusing{}
		at := &attempt{keys: &wire.Keys{Name: "key", Lock: "key"}, cfg: &q.cfg.plain}
		o := q.newOperation(OpRelease, q.need)
		o.send(t.Context(), at, at.call(wire.Release), clock.Instant(1), nil)
		steps := []func(){o.drop}
		for i := range 4 {
			steps = append(steps, func() { q.fake(i).answer(0, wire.Answer{Verdict: wire.OK}, nil) })
		}
		rand.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		for _, step := range steps {
			require.NotNil(t, o.q)
			step()
		}
		require.Nil(t, o.q, "it has nothing of its last user")
		o = q.newOperation(OpAcquire, 1)
		require.Equal(t, 0, o.Tally().Agreed)
		require.False(t, o.IsOver())
	}
	(*operation)(nil).drop()
}
