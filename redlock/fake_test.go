package redlock

import (
	"fmt"

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
