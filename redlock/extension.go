package redlock

import (
	"context"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// extension is the extension of up to wire.MaxGroup leases with the same TTL, by one request to
// each node. Each lease has its own outcome, as soon as that is certain.
//
// It only renews keys that are there, and tokens. A lease whose key is not there on a node is
// extended alone besides, by a script that looks at what is the matter and may put the key back;
// and so are all if a server refuses the command, because of one of them perhaps.
type extension struct {
	q      *Quorum
	call   *wire.Call
	leases []*holding
	start  clock.Instant
	began  time.Time // for tracers only
	alone  bool      // it is of one lease, and does what that needs
	key    string    // of that lease
	trace  trace

	result chan<- error // gets the outcome of one by hand; nil where the extender is to plan the next one
	beside bool         // another extension is traced for the lease, and plans the next

	mu      sync.Mutex
	replies []vote.Reply // guarded by mu
	tallies []tally      // guarded by mu; of the leases
	expired bool         // guarded by mu; ended by its timeout

	// Where that is enough, what an extension needs is here, and no objects of their own.
	asked    [5]node.Request
	few      [5]vote.Reply
	oneLease [1]*holding
	oneTally [1]tally
}

// tally is what nodes have said of a lease.
type tally struct {
	agreed, missed uint8
	gone           uint8 // nodes that did not have the key for its owner
	over           bool  // its outcome is certain
	alone          bool  // it is extended by itself too
}

// group is what leases have in common that are extended together.
type group struct {
	ttl    time.Duration
	spread bool // they want their tokens spread too
}

// startTogether sends an extension of leases of a group; nil if none is left.
func (q *Quorum) startTogether(leases []*holding, g group, start clock.Instant) *extension {
	leases = slices.DeleteFunc(leases, func(l *holding) bool { return l.Err() != nil })
	if len(leases) == 0 {
		return nil
	}
	held := make([]wire.Held, len(leases))
	expires := clock.Instant(math.MaxInt64) // a lease that was lost is not extended
	for i, l := range leases {
		held[i] = wire.Held{Keys: l.attempt.keys, Lock: l.attempt.lock}
		expires = min(expires, clock.Instant(l.deadline.Load()))
		if g.spread {
			l.hasSpread(start)
		}
	}
	// Batches in flight are of different keys, and this one has many: it counts as one of its own.
	// An extension that overtakes a release finds no key.
	name := "extension " + strconv.FormatUint(q.extensions.Add(1), 10)
	x := &extension{q: q, leases: leases, start: start, tallies: make([]tally, len(leases))}
	x.call = wire.NewExtendMany(name, q.texts.milliseconds(g.ttl), held, g.spread)
	x.send(context.Background(), node.Request{Expires: expires}, len(leases))
	return x
}

// send sends the extension to all nodes, as requests like that one.
func (x *extension) send(ctx context.Context, like node.Request, leases int) {
	q := x.q
	requests := x.asked[:]
	x.replies = x.few[:min(len(q.nodes), len(x.few))]
	if len(q.nodes) > len(requests) {
		requests, x.replies = make([]node.Request, len(q.nodes)), make([]vote.Reply, len(q.nodes))
	}
	if q.cfg.tracers.extend != nil {
		x.began = time.Now()
	}
	x.trace.begin(q)
	like.Call, like.To = x.call, x
	for i, m := range q.nodes {
		r := &requests[i]
		*r = like
		r.Slot = i
		x.trace.start(ctx, m, i, TraceNodeStartData{Op: OpExtend, Key: x.key, Leases: leases})
		if err := m.Send(r); err != nil {
			x.Answered(r, node.NotTaken(err))
		}
	}
}

// Answered takes a node's answer. The first one counts.
func (x *extension) Answered(r *node.Request, a node.Answer) {
	slot, m := r.Slot, x.q.nodes[r.Slot]
	rep := m.Reply(x.call, a)
	x.trace.end(m, slot, OpExtend, x.key, &rep)
	var alone, lost []*holding
	var endings []ending
	var now *standing
	x.mu.Lock()
	if x.replies[slot].Verdict != wire.Pending {
		x.mu.Unlock()
		return
	}
	x.replies[slot] = rep
	server := wire.IsServerError(rep.Err) && !wire.IsNoScript(rep.Err)
	for i, l := range x.leases {
		t := &x.tallies[i]
		switch x.of(i, &rep) {
		case wire.InPlace:
			t.agreed++
		case wire.Refilled:
			t.agreed++
			t.gone++
		default:
			t.missed++
			if rep.Verdict != wire.Failed {
				t.gone++
			}
			if !x.alone && (server || rep.Verdict != wire.Failed) && !t.alone {
				t.alone = true
				alone = append(alone, l)
			}
		}
		switch {
		case t.over:
			if int(t.gone) >= x.q.need {
				lost = append(lost, l)
			}
		case int(t.agreed) >= x.q.need || int(t.missed) > len(x.replies)-x.q.need:
			endings = append(endings, x.end(i, &now))
		}
	}
	x.mu.Unlock()
	if rep.Verdict == wire.Refused && rep.Extended == wire.ByOther {
		x.q.extender.lacks(x.leases[0])
	}
	x.finish(endings)
	for _, l := range lost {
		l.lose(LostRefused)
	}
	for _, l := range alone {
		x.q.extender.extendAlone(l)
	}
}

// of is what a node has answered of a lease.
func (x *extension) of(i int, rep *vote.Reply) wire.Extended {
	switch {
	case rep.Verdict == wire.Failed:
		return wire.Gone
	case x.alone:
		return rep.Extended
	case rep.More().Each[i] == '1':
		return wire.InPlace
	default:
		return wire.Gone
	}
}

// expire ends the extension: nodes that have not answered by now are taken for lost.
func (x *extension) expire() {
	x.mu.Lock()
	x.expired = true
	var endings []ending
	var now *standing
	for i := range x.tallies {
		if !x.tallies[i].over {
			endings = append(endings, x.end(i, &now))
		}
	}
	x.mu.Unlock()
	x.finish(endings)
}

// ending is the outcome of one lease's extension.
type ending struct {
	lease   *holding
	success bool
	lost    bool      // a quorum of nodes did not have the key for its owner
	as      *standing // nil where nobody asks for it
}

// standing is what nodes had answered when an outcome was certain.
type standing struct {
	vote.Outcome

	answers []NodeAnswer  // for tracers only
	took    time.Duration // until it was told to a tracer
	known   bool          // to a tracer
}

// told is how long the extension took, and whether a tracer was told of it before, for another
// lease: those that were extended together have the same outcome. A lease that has ended meanwhile
// has one of its own.
func (s *standing) told(began time.Time, ended bool) (took time.Duration, before bool) {
	switch {
	case ended:
		return time.Since(began), false
	case s.known:
		return s.took, true
	}
	s.took, s.known = time.Since(began), true
	return s.took, false
}

// end makes a lease's outcome of what nodes have said so far. What they have said of most leases is
// the same, and made once. Called with mu held.
func (x *extension) end(i int, now **standing) ending {
	t := &x.tallies[i]
	t.over = true
	e := ending{lease: x.leases[i], success: int(t.agreed) >= x.q.need, lost: int(t.gone) >= x.q.need}
	switch {
	case e.success && x.began.IsZero():
	case t.gone > 0 || t.alone:
		e.as = x.standing(i)
	default:
		if *now == nil {
			*now = x.standing(i)
		}
		e.as = *now
	}
	return e
}

// standing is what nodes have said of a lease. Called with mu held.
func (x *extension) standing(i int) *standing {
	t := &x.tallies[i]
	s := &standing{Outcome: vote.Outcome{
		Tally:   vote.Tally{Agreed: int(t.agreed), Success: int(t.agreed) >= x.q.need, Expired: x.expired},
		Replies: slices.Clone(x.replies),
	}}
	for k := range s.Replies {
		rep := &s.Replies[k]
		if rep.Verdict == wire.OK && x.of(i, rep) == wire.Gone {
			*rep = vote.Reply{Answer: wire.Answer{Verdict: wire.Refused, Extended: wire.Gone}, Took: rep.Took}
		}
		if x.began.IsZero() || rep.Verdict == wire.Pending {
			continue
		}
		m := x.q.nodes[k]
		answer := NodeAnswer{Node: m.addr, Duration: rep.Took, OK: rep.Verdict == wire.OK}
		if rep.Err != nil {
			answer.Err = m.failure(OpExtend, rep.Err)
		}
		s.answers = append(s.answers, answer)
	}
	return s
}

// finish applies outcomes, and plans the next extensions.
func (x *extension) finish(endings []ending) {
	for _, e := range endings {
		if e.lost {
			e.lease.lose(LostRefused)
		}
		margin, err := e.lease.apply(e, x.start)
		if e.as != nil && !x.began.IsZero() && (!x.beside || e.as.refilled() > 0) {
			e.lease.traceExtend(e.as, x.began, margin, err)
		}
		switch {
		case x.result != nil:
			x.result <- err
		case !x.beside:
			x.q.extender.plan(e.lease, err, x.start)
		}
	}
}

// refilled is how many nodes had lost the key and got it back.
func (s *standing) refilled() (n int) {
	for i := range s.Replies {
		if s.Replies[i].Extended == wire.Refilled {
			n++
		}
	}
	return n
}
