package redlock

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// extension is one request to nodes for leases with the same TTL: it renews the keys that are
// there, and raises tokens. Each node's answer counts by itself, see Lease.hears. A lease whose key
// is not on a node is extended there alone, by a script that looks for the reason and may put the
// key back, see Lease.lacks.
type extension struct {
	q      *Quorum
	group  *group // the group that was due; nil for one node that lacks the key, and for Lease.Extend
	leases []*Lease
	call   *wire.Call // nil for one lease alone
	start  clock.Instant
	began  time.Time // for tracers only

	replies []vote.Reply // guarded by extender.mu
}

// extendAlone makes the extension of one lease.
func (q *Quorum) extendAlone(l *Lease, start clock.Instant, g *group) *extension {
	return &extension{q: q, group: g, leases: []*Lease{l}, start: start, began: time.Now(), replies: make([]vote.Reply, len(q.nodes))}
}

// extendTogether makes the extension of several leases.
func (q *Quorum) extendTogether(leases []*Lease, start clock.Instant, g *group) *extension {
	var keys, locks []string
	for _, l := range leases {
		keys, locks = append(keys, l.attempt.keys.Lock), append(locks, l.attempt.lock)
	}
	x := q.extendAlone(nil, start, g)
	x.leases = leases
	// Batches in flight are of different keys. This request has many keys, so it counts as one of
	// its own. It may reach a node after the release of one of its leases: then it finds no key.
	name := "extension " + strconv.FormatUint(q.extensions.Add(1), 10)
	x.call = wire.NewExtendMany(name, leases[0].attempt.cfg.ttlText, append(keys, leases[0].attempt.keys.Fences), locks)
	return x
}

// sending is an extension on its way to a node and back.
type sending struct {
	node.Request

	x     *extension
	data  TraceNodeStartData
	trace trace
}

// send sends the extension to a node. It is taken back if the deadline of one of its leases passes,
// or its only lease ends, before it is written.
func (x *extension) send(i int) {
	m := x.q.nodes[i]
	s := &sending{Request: node.Request{Call: x.call, Slot: i, Expires: never}, x: x}
	s.To, s.data = s, TraceNodeStartData{Op: OpExtend, Leases: len(x.leases)}
	if x.call == nil {
		l := x.leases[0]
		s.Call, s.Ended, s.data = l.extendCall(i), &l.attempt.ended, TraceNodeStartData{Op: OpExtend, Key: l.Key()}
	}
	for _, l := range x.leases {
		s.Expires = min(s.Expires, clock.Instant(l.deadline.Load()))
	}
	s.trace.begin(x.q)
	s.trace.start(context.Background(), m, i, s.data)
	m.Send(&s.Request)
}

// Answered takes the node's answer.
func (s *sending) Answered(r *node.Request, a node.Answer) {
	x, i, m := s.x, r.Slot, s.x.q.nodes[r.Slot]
	rep := m.Reply(r.Call, a)
	s.trace.end(m, i, OpExtend, s.data.Key, &rep)
	var again *extension
	if rep.Verdict == wire.Failed && x.group != nil {
		again = x.rest()
	}
	taken := a.Unsent && (a.Err == node.ErrAbandoned || x.q.clock.Now() > r.Expires)
	replies := x.q.extender.answered(i, x, &rep, again, taken)
	if !taken {
		x.told(i, replies, a.Sent)
	}
	x.q.extender.pump(i)
}

// rest returns the extension of the leases that are still to be extended; nil if there are none.
func (x *extension) rest() *extension {
	live := slices.DeleteFunc(slices.Clone(x.leases), func(l *Lease) bool { return !l.extends() })
	switch len(live) {
	case 0:
		return nil
	case len(x.leases):
		return x
	default:
		return x.q.extendTogether(live, x.start, x.group)
	}
}

// told passes a node's answer to the leases, and tells tracers what comes of it: a lease's deadline
// moves, it cannot move because too many nodes miss the lease, or a key was put back. replies are
// those of all nodes.
func (x *extension) told(i int, replies []vote.Reply, sent clock.Instant) {
	failed, t := vote.Count(replies, wire.Failed), x.q.cfg.tracers.extend
	var events []TraceExtendData
	for k, l := range x.leases {
		var margin time.Duration
		var news bool
		var err error
		if said := x.of(k, &replies[i]); replies[i].Verdict != wire.Failed {
			margin, news = l.hears(i, said, sent, x.start)
			news = news || said == wire.Refilled && margin > 0
		}
		if !news && failed > 0 {
			margin, err = l.misses(x.start, replies)
		}
		if t != nil && (news || err != nil) {
			data := x.data(k, replies)
			data.Margin, data.Err, data.Shared = margin, err, len(events) > 0
			events = append(events, data)
		}
	}
	for _, data := range events {
		t.TraceExtend(&data.Lease.values, data)
	}
}

// data returns the answers of the nodes for a lease, as tracers are told of them.
func (x *extension) data(k int, replies []vote.Reply) TraceExtendData {
	l := x.leases[k]
	data := TraceExtendData{Key: l.Key(), Lease: l, Start: x.began, Duration: time.Since(x.began)}
	for i := range replies {
		rep, m := &replies[i], x.q.nodes[i]
		if rep.Verdict == wire.Pending {
			continue
		}
		said := x.of(k, rep)
		answer := NodeAnswer{Node: m.addr, Duration: rep.Took, OK: said == wire.InPlace || said == wire.Refilled}
		if rep.Err != nil {
			answer.Err = m.failure(OpExtend, rep.Err)
		}
		data.Answers = append(data.Answers, answer)
		switch said {
		case wire.InPlace:
			data.Extended++
		case wire.Refilled:
			data.Refilled++
		}
	}
	return data
}

// of returns a node's answer for one lease.
func (x *extension) of(k int, rep *vote.Reply) wire.Extended {
	switch {
	case rep.Verdict == wire.Failed:
		return wire.Gone
	case x.call == nil:
		return rep.Extended
	default:
		return wire.Extended(rep.More().Each[k] - '0')
	}
}
