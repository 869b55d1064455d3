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

// extension is what nodes are asked at once for leases with the same TTL: to renew keys that are
// there, and tokens. Each node answers for itself, see holding.hears.
//
// A lease whose key is not there on a node is asked for there by itself, by a script that looks at
// what is the matter and may put the key back, see holding.lacks; and so are all if a server refuses
// the command, because of one of them perhaps.
type extension struct {
	q      *Quorum
	group  *group // that was due; nil for what one node lacks
	leases []*holding
	call   *wire.Call
	spread bool
	alone  bool // it is of one lease, by a script of its own
	start  clock.Instant
	began  time.Time // for tracers only

	replies []vote.Reply // guarded by extender.mu
}

func (q *Quorum) newExtension(leases []*holding, start clock.Instant, g *group) *extension {
	x := &extension{q: q, group: g, leases: leases, start: start, replies: make([]vote.Reply, len(q.nodes))}
	if q.cfg.tracers.extend != nil {
		x.began = time.Now()
	}
	return x
}

// extendTogether makes the extension of several leases.
func (q *Quorum) extendTogether(leases []*holding, start clock.Instant, g *group, spread bool) *extension {
	held := make([]wire.Held, len(leases))
	for i, l := range leases {
		held[i] = wire.Held{Keys: l.attempt.keys, Lock: l.attempt.lock}
	}
	// Batches in flight are of different keys, and this one has many: it counts as one of its own.
	// An extension that overtakes a release finds no key.
	name := "extension " + strconv.FormatUint(q.extensions.Add(1), 10)
	x := q.newExtension(leases, start, g)
	x.spread, x.call = spread, wire.NewExtendMany(name, q.texts.milliseconds(leases[0].TTL()), held, spread)
	return x
}

// extendAlone makes the extension of one lease.
func (q *Quorum) extendAlone(l *holding, start clock.Instant, g *group, call wire.Call) *extension {
	x := q.newExtension([]*holding{l}, start, g)
	x.alone, x.call = true, &call
	return x
}

// key is that of a lease that is alone.
func (x *extension) key() string {
	if x.alone {
		return x.leases[0].Key()
	}
	return ""
}

// sending is an extension on its way to a node and back.
type sending struct {
	node.Request

	x     *extension
	trace trace
}

// send sends the extension to a node. It is taken back if the first of its leases has ended before
// it is written.
func (x *extension) send(i int) {
	q, m := x.q, x.q.nodes[i]
	s := &sending{x: x, Request: node.Request{Call: x.call, Slot: i, Expires: never}}
	s.To = s
	for _, l := range x.leases {
		s.Expires = min(s.Expires, clock.Instant(l.deadline.Load()))
	}
	ctx, data := context.Background(), TraceNodeStartData{Op: OpExtend, Leases: len(x.leases)}
	if x.alone {
		s.Ended = &x.leases[0].attempt.ended
		ctx, data = &x.leases[0].values, TraceNodeStartData{Op: OpExtend, Key: x.key()}
	}
	s.trace.begin(q)
	s.trace.start(ctx, m, i, data)
	if err := m.Send(&s.Request); err != nil {
		s.Answered(&s.Request, node.NotTaken(err))
	}
}

// Answered takes the node's answer.
func (s *sending) Answered(r *node.Request, a node.Answer) {
	x, i, m := s.x, r.Slot, s.x.q.nodes[r.Slot]
	rep := m.Reply(x.call, a)
	s.trace.end(m, i, OpExtend, x.key(), &rep)
	replies := x.q.extender.answered(i, x, &rep, x.again(&rep))
	x.told(i, replies, a.Sent)
	x.q.extender.pump(i)
}

// again is what is to be tried once more after an answer: all that are still wanted, after a
// failure. What a node lacked is asked for after its next sweep.
func (x *extension) again(rep *vote.Reply) (again []*extension) {
	if rep.Verdict != wire.Failed || x.group == nil {
		return nil
	}
	live := slices.DeleteFunc(slices.Clone(x.leases), func(l *holding) bool { return l.unextended.Load() || l.Err() != nil })
	switch {
	case len(live) == 0:
	case !x.alone && wire.IsServerError(rep.Err) && !wire.IsNoScript(rep.Err):
		for _, l := range live {
			again = append(again, x.q.extendAlone(l, x.start, x.group, l.extendCall(x.start)))
		}
	case len(live) == len(x.leases):
		again = append(again, x)
	default:
		again = append(again, x.q.extendTogether(live, x.start, x.group, x.spread))
	}
	return again
}

// told has the leases hear of a node's answer, and tracers of what comes of that: once when a
// lease's deadline moves, or so many nodes miss it that it cannot, and of a key that was put back.
// replies are what all nodes have said.
func (x *extension) told(i int, replies []vote.Reply, sent clock.Instant) {
	rep, t := &replies[i], x.q.cfg.tracers.extend
	failed := vote.Count(replies, wire.Failed)
	var events []event
	shared := &TraceExtendData{}
	for k, l := range x.leases {
		var margin time.Duration
		var news bool
		var err error
		if x.group == nil {
			l.asked(i)
		}
		if rep.Verdict != wire.Failed {
			said := x.of(k, rep)
			margin, news = l.hears(i, said, sent, x.start)
			news = news || said == wire.Refilled && margin > 0
		}
		if !news && failed > 0 {
			margin, err = l.misses(x.start, replies)
			news = err != nil
		}
		if news && t != nil {
			events = append(events, event{l, x.event(k, replies, shared, margin, err)})
		}
	}
	for _, e := range events {
		t.TraceExtend(&e.lease.values, e.data)
	}
}

// event is what a tracer is to be told of a lease.
type event struct {
	lease *holding
	data  TraceExtendData
}

// event makes one. What nodes have said of most leases is the same, and made once, in shared.
func (x *extension) event(k int, replies []vote.Reply, shared *TraceExtendData, margin time.Duration, err error) TraceExtendData {
	own := x.repliesOf(k, replies)
	data := *shared
	switch {
	case &own[0] != &replies[0] || err != nil:
		data = x.q.extended(own, x.began)
	case shared.Answers == nil:
		*shared = x.q.extended(own, x.began)
		data = *shared
		shared.Shared = true
	}
	l := x.leases[k]
	data.Key, data.Lease, data.Margin, data.Err = l.Key(), l.shown(), margin, err
	return data
}

// of is what a node has answered of a lease.
func (x *extension) of(k int, rep *vote.Reply) wire.Extended {
	switch {
	case rep.Verdict == wire.Failed:
		return wire.Gone
	case x.alone:
		return rep.Extended
	case rep.Verdict == wire.OK && rep.More().Each[k] == '1':
		return wire.InPlace
	default:
		return wire.Gone
	}
}

// repliesOf is what nodes have said of a lease: as they have said it, if all that have answered
// have its key.
func (x *extension) repliesOf(k int, replies []vote.Reply) []vote.Reply {
	own := replies
	for i := range replies {
		if rep := &replies[i]; rep.Verdict == wire.OK && x.of(k, rep) == wire.Gone {
			if &own[0] == &replies[0] {
				own = slices.Clone(replies)
			}
			own[i] = vote.Reply{Answer: wire.Answer{Verdict: wire.Refused, Extended: wire.Gone}, Took: rep.Took}
		}
	}
	return own
}

// extended is what nodes have said to an extension that began at that time.
func (q *Quorum) extended(replies []vote.Reply, began time.Time) TraceExtendData {
	data := TraceExtendData{Start: began, Duration: time.Since(began)}
	for i := range replies {
		rep, m := &replies[i], q.nodes[i]
		if rep.Verdict == wire.Pending {
			continue
		}
		answer := NodeAnswer{Node: m.addr, Duration: rep.Took, OK: rep.Verdict == wire.OK}
		if rep.Err != nil {
			answer.Err = m.failure(OpExtend, rep.Err)
		}
		data.Answers = append(data.Answers, answer)
		switch {
		case rep.Verdict != wire.OK:
		case rep.Extended == wire.Refilled:
			data.Refilled++
		default:
			data.Extended++
		}
	}
	return data
}
