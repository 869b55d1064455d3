package redlock

import (
	"context"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// convoy is an extension of several leases in one round: a request to each node carries all of
// them, and the answer of a node counts for each. It only renews keys that are there. A lease whose
// key is not there on a node gets an extension of its own besides, which looks at what is the
// matter and may put the key back; and so do all if a server refuses the command, because of one of
// them perhaps.
//
// In some the tokens are spread too. Leases that want more than that, or another expiry than the
// Quorum's TTL, are extended by themselves.
type convoy struct {
	q      *Quorum
	leases []*Lease
	start  clock.Instant
	began  time.Time // for tracers only

	mu      sync.Mutex
	replies []reply // guarded by mu
	tallies []tally // guarded by mu; of the leases
	expired bool    // guarded by mu; ended by its timeout
}

// tally is what nodes have said of a lease.
type tally struct {
	agreed, missed uint8
	over           bool // its outcome is certain
	alone          bool // it is extended by itself too
}

// company is with whom a lease's extension can travel.
type company int

const (
	nobody    company = iota
	extending         // those that want nothing but a new expiry
	spreading         // those that want their tokens spread too
)

// company is that of the lease's extension at that time.
func (l *Lease) company(start clock.Instant) company {
	switch {
	case l.lacking.Load(): // its key would not be found there
		return nobody
	case l.attempt.cfg.minHold > 0, l.TTL() != l.q.texts.ttl: //mutant:convoy-for-a-minimum-hold,convoy-for-another-ttl
		return nobody
	case clock.Instant(l.deadline.Load()).Sub(start) < l.q.cfg.timeout(l.TTL()):
		return nobody // all would have to be sent before its end
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case start.Sub(l.spread) < spreadEvery: //mutant:convoy-spreads-nothing
		return extending
	case l.attempt.cfg.once != nil: // a record is spread with the token //mutant:convoy-for-all
		return nobody
	default:
		return spreading
	}
}

// startConvoy sends an extension of leases in that company.
func (q *Quorum) startConvoy(leases []*Lease, in company, start clock.Instant) *convoy {
	c := &convoy{q: q, leases: leases, start: start, replies: make([]reply, len(q.nodes)), tallies: make([]tally, len(leases))}
	if q.cfg.tracers.extend != nil {
		c.began = time.Now()
	}
	// Batches in flight are of different keys, and this one has many: it counts as one of its own.
	// An extension that overtakes a release finds no key.
	call := c.call(in, "convoy "+strconv.FormatUint(q.convoys.Add(1), 10))
	expires := clock.Instant(math.MaxInt64) // a lease that was lost is not extended
	for _, l := range leases {
		expires = min(expires, clock.Instant(l.deadline.Load())) //mutant:convoy-carries-the-lost
	}
	for i, n := range q.nodes {
		r := &request{call: call, convoy: c, slot: i, expires: expires}
		if !c.began.IsZero() {
			r.began = start
		}
		if t := q.cfg.tracers.node; t != nil {
			r.began = start
			r.ctx = t.TraceNodeStart(context.Background(), TraceNodeStartData{Op: OpExtend, Node: n.addr, Leases: len(leases)}) //mutant:convoy-untraced
		}
		n.send(r)
	}
	return c
}

// call makes the operation, and notes which leases spread their tokens.
func (c *convoy) call(in company, name string) *wire.Call {
	held := make([]wire.Held, len(c.leases))
	for i, l := range c.leases {
		held[i] = wire.Held{Keys: l.attempt.keys, Owner: l.attempt.owner, Token: l.attempt.token}
		if in == spreading {
			l.mu.Lock()
			l.spread = c.start
			l.mu.Unlock()
		}
	}
	return wire.NewExtendMany(name, c.q.texts.ttlText, held, in == spreading)
}

// settle takes a node's answer. The first one counts.
func (c *convoy) settle(r *request, rep reply) {
	c.mu.Lock()
	if c.replies[r.slot].Verdict != wire.Pending {
		c.mu.Unlock()
		return
	}
	c.replies[r.slot] = rep
	var certain []*certainty
	var alone []*Lease
	asked := rep.Verdict == wire.OK || isServerError(rep.err) && !isNoScript(rep.err) //mutant:convoy-refused-as-a-whole
	for i := range c.tallies {
		t := &c.tallies[i]
		if rep.Verdict == wire.OK && rep.Each[i] == '1' {
			t.agreed++
		} else {
			t.missed++
			if asked && !t.alone { //mutant:convoy-loses-the-odd,convoy-loses-the-odd-twice,convoy-ignores-the-late
				t.alone = true
				alone = append(alone, c.leases[i])
			}
		}
		if !t.over && (int(t.agreed) >= c.q.need || int(t.missed) > len(c.replies)-c.q.need) { //mutant:convoy-before-the-quorum,convoy-waits-for-the-dead
			certain = append(certain, c.end(i))
		}
	}
	c.mu.Unlock()
	c.finish(certain)
	for _, l := range alone {
		c.q.extender.extendAlone(l)
	}
}

// expire ends the convoy: nodes that have not answered by now are taken for lost.
func (c *convoy) expire() {
	c.mu.Lock()
	c.expired = true
	var certain []*certainty
	for i := range c.tallies {
		if !c.tallies[i].over {
			certain = append(certain, c.end(i))
		}
	}
	c.mu.Unlock()
	c.finish(certain)
}

// certainty is the outcome of one lease's extension.
type certainty struct {
	lease *Lease
	outcome
}

// end makes a lease's outcome of what nodes have said so far. Called with mu held.
func (c *convoy) end(i int) *certainty {
	t := &c.tallies[i]
	t.over = true
	e := &certainty{c.leases[i], outcome{agreed: int(t.agreed), success: int(t.agreed) >= c.q.need, expired: c.expired}}
	if e.success && c.began.IsZero() {
		return e
	}
	e.replies = slices.Clone(c.replies)
	for k, rep := range e.replies {
		switch {
		case rep.Verdict != wire.OK:
		case rep.Each[i] != '1':
			e.replies[k] = reply{Answer: wire.Answer{Verdict: wire.Refused}, took: rep.took}
		}
	}
	return e
}

// finish applies outcomes, and plans the next extensions.
func (c *convoy) finish(certain []*certainty) {
	for _, e := range certain {
		e.lease.checkRefused(e.outcome)
		margin, err := e.lease.apply(e.outcome, c.start)
		e.lease.traceExtend(e.outcome, c.began, margin, err)
		c.q.extender.plan(e.lease, err, c.start)
	}
}
