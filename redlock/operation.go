package redlock

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// attempt has what the requests of one owner value share. Once it has ended, only releases are sent
// for it: a request that would set or extend its keys is dropped instead.
type attempt struct {
	keys  *wire.Keys
	owner string
	lock  string // what its keys hold, see wire.Lock; its token is the one that was proposed last
	cfg   *leaseConfig
	ended atomic.Bool
	first bool // its acquisition is the first of its line

	member string // of the queue, see package waitqueue; empty for an attempt that does not wait

	// Of an acquisition. In a split vote it may ask in several rounds.
	since clock.Instant // when it asked first: a grant of any of its rounds lasts for a TTL from then at least
	token uint64        // that it proposes: the same in each round
	asked *operation    // its last round; nil before the first, and when it has ended
	times int           // how often it asked
	early bool          // the process was not admitted at some time of it, see package roster
}

// question returns an attempt for calls that want no lease of the keys.
func (q *Quorum) question(keys *wire.Keys) *attempt { return &attempt{keys: keys, cfg: q.cfg.plain} }

// call returns a call of the attempt; the caller adds the fields that only its operation has.
func (at *attempt) call(op wire.Op) wire.Call {
	return wire.Call{
		Op: op, Keys: at.keys, Lock: at.lock,
		Member: at.member, QueueLife: at.cfg.queue,
	}
}

// operation is one question to several nodes at once, and the round of their answers.
//
// Its memory is used again once its maker, and each node that was asked, has dropped it. A node has
// a request from Send until its answer, and no longer. If the maker does not drop it, or a node
// never answers, the memory is the garbage collector's.
type operation struct {
	vote.Round

	users atomic.Int32 // its maker, and the nodes that have not answered
	q     *Quorum
	op    Op
	key   string
	lease *Lease // that hears of the answers too; nil for none
	trace trace
	call  wire.Call       // the call of the first send
	few   [5]node.Request // memory of the requests, where it is enough
}

// newOperation makes an operation on all nodes, which succeeds when need of them agree.
func (q *Quorum) newOperation(op Op, need int) *operation {
	o, ok := q.operations.Get().(*operation)
	if !ok {
		o = &operation{}
	}
	o.q, o.op = q, op
	o.users.Store(1)
	o.Start(len(q.nodes), need)
	return o
}

// only restricts the operation to the nodes that want selects (all when nil). The other nodes count
// as refusals: the round spans all nodes, so that replies keep their places. It returns the
// selection, for send. want is called once a node, because what it looks at may change.
func (o *operation) only(want func(int) bool) func(int) bool {
	left := make([]bool, len(o.q.nodes))
	for i := range left {
		if left[i] = want != nil && !want(i); left[i] {
			o.Skip(i, wire.Refused)
		}
	}
	return func(i int) bool { return !left[i] }
}

// drop is called by each user of the operation that does not look at it any more. It takes nil.
func (o *operation) drop() {
	if o == nil || o.users.Add(-1) > 0 {
		return
	}
	q, memory := o.q, o.Memory
	*o = operation{}
	o.Memory = memory
	q.operations.Put(o)
}

// Answered takes a node's answer.
func (o *operation) Answered(r *node.Request, a node.Answer) {
	m, slot := o.q.nodes[r.Slot], r.Slot
	rep := m.Reply(r.Call, a)
	o.trace.end(m, slot, o.op, o.key, &rep)
	if o.lease != nil && rep.Verdict != wire.Failed {
		o.lease.hears(slot, rep.Extended, a.Sent, a.Sent)
	}
	o.Answer(slot, rep)
	o.drop()
}

// send sends one call of an attempt to the nodes that want selects (all when nil) and starts no
// timer: the caller waits or expires the round. A second send may have another call for other
// nodes.
func (o *operation) send(ctx context.Context, at *attempt, call wire.Call, expires clock.Instant, want func(int) bool) {
	asked := &o.call
	if asked.Keys != nil { // nodes of an earlier send may still read its call
		asked = new(wire.Call)
	} else if o.key = at.keys.Name; !call.Op.IsProbe() {
		o.trace.begin(o.q)
	}
	*asked = call
	requests := o.few[:]
	if len(o.q.nodes) > len(requests) {
		requests = make([]node.Request, len(o.q.nodes))
	}
	if o.trace.nodes != nil && at.first { // the tracer is foreign code
		o.q.lines.aside(o.key, 1)
		defer o.q.lines.aside(o.key, -1)
	}
	asks := func(i int) bool { return want == nil || want(i) }
	for i, m := range o.q.nodes { // before any of them is asked: a tracer may panic
		if asks(i) {
			o.trace.start(ctx, m, i, TraceNodeStartData{Op: o.op, Key: o.key})
		}
	}
	for i, m := range o.q.nodes {
		if !asks(i) {
			continue
		}
		r := &requests[i]
		*r = node.Request{Call: asked, To: o, Slot: i, Expires: expires, TTL: at.cfg.ttl, Ended: &at.ended}
		o.users.Add(1)
		m.Send(r)
	}
}

// trace tells tracers of the requests of an operation. The zero value tells none.
type trace struct {
	on    bool // there is a tracer
	began clock.Instant
	nodes []context.Context // of the requests that NodeTracer was told of
}

// begin is called before the first request.
func (t *trace) begin(q *Quorum) {
	if q.cfg.tracers.node == nil && q.cfg.tracers.extend == nil {
		return
	}
	t.on, t.began = true, q.clock.Now()
	if q.cfg.tracers.node != nil {
		t.nodes = make([]context.Context, len(q.nodes))
	}
}

// start is called before a request is sent to the node.
func (t *trace) start(ctx context.Context, m *member, slot int, data TraceNodeStartData) {
	if t.nodes != nil {
		data.Node = m.addr
		t.nodes[slot] = m.q.cfg.tracers.node.TraceNodeStart(ctx, data)
	}
}

// end is called with a node's reply, and sets how long that took.
func (t *trace) end(m *member, slot int, op Op, key string, rep *vote.Reply) {
	if !t.on {
		return
	}
	rep.Took = m.q.clock.Now().Sub(t.began)
	if t.nodes == nil || t.nodes[slot] == nil {
		return
	}
	data := TraceNodeEndData{Op: op, Key: key, Node: m.addr, OK: rep.Verdict == wire.OK, Duration: rep.Took}
	if rep.Err != nil {
		data.Err = m.failure(op, rep.Err)
	}
	m.q.cfg.tracers.node.TraceNodeEnd(t.nodes[slot], data)
	t.nodes[slot] = nil
}

// quorumError returns the error of a round that failed because nodes failed.
func (q *Quorum) quorumError(op Op, key string, o vote.Outcome) *QuorumError {
	e := &QuorumError{Op: op, Key: key, Succeeded: o.Agreed, Need: q.need, Nodes: len(o.Replies)}
	for i, rep := range o.Replies {
		switch {
		case rep.Verdict == wire.Failed:
			e.Errs = append(e.Errs, q.nodes[i].failure(op, rep.Err))
		case rep.Verdict == wire.Pending && o.Expired:
			e.Errs = append(e.Errs, q.nodes[i].failure(op, ErrTimeout))
		case rep.Verdict == wire.Pending:
			e.unheard++
		}
	}
	return e
}

// isTimeout reports whether a node's reply did not come in time.
func isTimeout(rep *vote.Reply) bool { return errors.Is(rep.Err, node.ErrTimeout) }
