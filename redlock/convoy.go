package redlock

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
)

// convoy is an extension of several leases in one round: a request to each node carries all of them, and the answer of a node counts for each. It only
// renews keys that are there. A lease whose key is not there on a node gets an extension of its own, which looks at what is the matter.
//
// In some the tokens are spread too. Leases that want more than that, or another expiry than the Quorum's TTL, are extended by themselves; and so are all
// where somebody traces requests.
type convoy struct {
	q      *Quorum
	leases []*Lease
	words  []string // of the command, of which the first are keys
	keys   int      // how many
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
	over           bool // its outcome is certain, or it is extended by itself
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
	if !l.q.counted || l.q.cfg.tracers.node != nil || l.attempt.cfg.minHold > 0 || l.ttlFrom(start) != l.q.texts.ttl {
		return nobody
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case start.Sub(l.spread) < spreadEvery:
		return extending
	case l.attempt.cfg.once != nil: // a record is spread with the token
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
	c.write(in)
	// Batches in flight are of different keys, and this one has many: it counts as one of its own. An extension that overtakes a release finds no key.
	at := &attempt{keys: &keyset{lock: "convoy " + strconv.FormatUint(q.convoys.Add(1), 10)}}
	expires := clock.Instant(math.MaxInt64) // a lease that was lost is not extended
	for _, l := range leases {
		expires = min(expires, clock.Instant(l.deadline.Load()))
	}
	for i, n := range q.nodes {
		r := &request{op: OpExtend, attempt: at, convoy: c, slot: i, args: &q.texts.extend, expires: expires}
		if !c.began.IsZero() {
			r.began = start
		}
		n.send(r)
	}
	return c
}

// write makes the command's words.
func (c *convoy) write(in company) {
	c.keys = len(c.leases)
	c.words = make([]string, 0, 4*c.keys+2)
	for _, l := range c.leases {
		c.words = append(c.words, l.attempt.keys.lock)
	}
	if in == spreading {
		c.keys *= 2
		for _, l := range c.leases {
			c.words = append(c.words, l.attempt.keys.fence)
			l.mu.Lock()
			l.spread = c.start
			l.mu.Unlock()
		}
	}
	c.words = append(c.words, c.q.texts.extend.ttl)
	for _, l := range c.leases {
		c.words = append(c.words, l.attempt.owner)
	}
	if in == spreading {
		for _, l := range c.leases {
			c.words = append(c.words, strconv.FormatUint(l.attempt.token, 10))
		}
		c.words = append(c.words, counterLifetime)
	}
}

// command is extendManyScript. What was released meanwhile has another owner, or none.
func (c *convoy) command(client valkey.Client, full bool) valkey.Completed {
	return extendManyScript.call(client, c.words, c.keys, full)
}

// settle takes a node's answer. The first one counts.
func (c *convoy) settle(r *request, rep reply) {
	c.mu.Lock()
	if c.replies[r.slot].verdict != pending {
		c.mu.Unlock()
		return
	}
	c.replies[r.slot] = rep
	var certain, odd, late []int
	if rep.verdict == agreed {
		certain, odd, late = c.count(rep.digits)
	} else {
		certain = c.miss()
	}
	c.mu.Unlock()
	c.finish(certain)
	for _, i := range odd {
		c.q.extender.extendAlone(c.leases[i], nil)
	}
	for _, i := range late {
		c.q.extender.extendAlone(c.leases[i], make(chan error, 1)) // the next one is planned already
	}
}

// count adds an answer. It returns the leases whose outcome is certain now, and those whose key is not there, odd ones before and late ones after their
// outcome was certain. Called with mu held.
func (c *convoy) count(digits string) (certain, odd, late []int) {
	for i := range c.tallies {
		t := &c.tallies[i]
		switch {
		case digits[i] == '1':
			if t.agreed++; !t.over && int(t.agreed) >= c.q.need {
				t.over = true
				certain = append(certain, i)
			}
		case t.over:
			late = append(late, i)
		default:
			t.over = true
			odd = append(odd, i)
		}
	}
	return certain, odd, late
}

// miss counts a node without an answer, and returns the leases whose outcome is certain now. Called with mu held.
func (c *convoy) miss() (certain []int) {
	for i := range c.tallies {
		t := &c.tallies[i]
		if t.missed++; !t.over && int(t.missed) > len(c.replies)-c.q.need {
			t.over = true
			certain = append(certain, i)
		}
	}
	return certain
}

// expire ends the convoy: nodes that have not answered by now are taken for lost.
func (c *convoy) expire() {
	c.mu.Lock()
	c.expired = true
	var certain []int
	for i := range c.tallies {
		if t := &c.tallies[i]; !t.over {
			t.over = true
			certain = append(certain, i)
		}
	}
	c.mu.Unlock()
	c.finish(certain)
}

// finish applies the outcome to leases for which it is certain, and plans their next extensions.
func (c *convoy) finish(leases []int) {
	if len(leases) == 0 {
		return
	}
	c.mu.Lock()
	replies := slices.Clone(c.replies)
	outcomes := make([]outcome, len(leases))
	for k, i := range leases {
		agreed := int(c.tallies[i].agreed)
		outcomes[k] = outcome{agreed: agreed, success: agreed >= c.q.need, expired: c.expired, replies: replies}
	}
	c.mu.Unlock()
	for k, i := range leases {
		l, o := c.leases[i], outcomes[k]
		margin, err := l.apply(o, c.start, l.TTL())
		l.traceExtend(o, c.began, margin, err)
		c.q.extender.plan(l, err, c.start)
	}
}
