package redlock

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

const (
	// phases is into how many parts an interval is divided. What becomes due in one of them is
	// extended together, at its beginning: whatever the number of leases, that is eight times in an
	// interval.
	phases = 8
	// maxUnderway is how many leases a node has not answered for at most. What waits for a slow
	// node waits here, where it can be taken back, and not in the network.
	maxUnderway = 4 * wire.MaxGroup
)

// extender has all leases of a Quorum that have not ended, and extends those that are to be
// extended: one goroutine and one timer, whatever their number. Each node is swept by itself: no
// node waits for another, and none is asked for a lease again before it has answered, or failed.
type extender struct {
	q    *Quorum
	wake chan struct{} // capacity 1; something may be due earlier than it was

	mu     sync.Mutex
	closed bool              // guarded by mu
	groups map[rhythm]*group // guarded by mu
	lanes  []lane            // guarded by mu; one a node
}

// rhythm is to which TTL leases are extended, and when.
type rhythm struct {
	ttl    time.Duration
	period time.Duration // 0 for never
	phase  clock.Instant // within the period
}

// group is the leases with a rhythm.
type group struct {
	rhythm

	due      clock.Instant // guarded by extender.mu
	leases   []*Lease      // guarded by extender.mu
	underway []int         // guarded by extender.mu; for each node how many of its extensions it has not answered
}

// lane is what a node is asked for leases. Its fields are guarded by extender.mu.
type lane struct {
	waiting  []*extension
	underway int           // leases that the node has been asked for, and has not answered
	failed   *vote.Reply   // its last answer, if that was none
	pause    time.Duration // before it is asked again, after that
	until    clock.Instant // the end of that pause
}

func newExtender(q *Quorum, nodes int) *extender {
	return &extender{q: q, wake: make(chan struct{}, 1), groups: make(map[rhythm]*group), lanes: make([]lane, nodes)}
}

// add takes a lease, unless it has ended. It returns false if the Quorum has been closed.
func (e *extender) add(l *Lease) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || l.final.Load() != nil {
		return !e.closed
	}
	r, due := rhythm{}, never
	if cfg := l.attempt.cfg; !cfg.manual {
		part := cfg.interval / phases
		due = l.since.Add(cfg.interval)
		due -= due % clock.Instant(part)
		r = rhythm{cfg.ttl, phases * part, due % clock.Instant(phases*part)}
	}
	g := e.groups[r]
	if g == nil {
		g = &group{rhythm: r, due: due, underway: make([]int, len(e.lanes))}
		e.groups[r] = g
		e.signal()
	}
	for i := range e.lanes { // that may pause for one with a longer TTL
		e.lanes[i].until = min(e.lanes[i].until, e.q.clock.Now().Add(l.TTL()/retryFraction))
	}
	l.group, l.place = g, len(g.leases)
	g.leases = append(g.leases, l)
	return true
}

// remove forgets a lease that has ended.
func (e *extender) remove(l *Lease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	g := l.group
	if g == nil {
		return
	}
	last := len(g.leases) - 1
	g.leases[l.place] = g.leases[last]
	g.leases[l.place].place = l.place
	g.leases[last] = nil
	g.leases, l.group = g.leases[:last], nil
}

// close has no more leases taken, and returns those that are there.
func (e *extender) close() (leases []*Lease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for _, g := range e.groups {
		leases = append(leases, g.leases...)
	}
	return leases
}

func (e *extender) signal() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// run extends what is due until the Quorum is closed.
func (e *extender) run() {
	timer := time.NewTimer(clock.AtOnce)
	defer timer.Stop()
	for {
		select {
		case <-e.q.done:
			return
		case <-e.wake:
		case <-timer.C:
		}
		timer.Reset(max(e.sweep().Sub(e.q.clock.Now()), clock.AtOnce))
	}
}

// never is later than everything.
const never = clock.Instant(1<<63 - 1)

// sweep has what is due sent to each node, or wait for it, and returns when the next is due.
func (e *extender) sweep() (next clock.Instant) {
	e.mu.Lock()
	now := e.q.clock.Now()
	next = now.Add(time.Hour)
	due := make(map[*group][]*Lease)
	for r, g := range e.groups {
		if g.due <= now && len(g.leases) == 0 {
			delete(e.groups, r)
			continue
		}
		if late := now.Sub(g.due); late >= 0 {
			due[g] = slices.Clone(g.leases)
			g.due = g.due.Add(late - late%g.period + g.period)
		}
		next = min(next, g.due)
	}
	for i := range e.lanes {
		if ln := &e.lanes[i]; ln.until > now && len(ln.waiting) > 0 {
			next = min(next, ln.until)
		}
	}
	e.mu.Unlock()
	for g, leases := range due {
		e.extend(g, leases, now)
	}
	for i := range e.lanes {
		e.pump(i)
	}
	return next
}

// extend has all leases of a group extended: together, up to wire.MaxGroup by one request to each
// node. A node that has not been asked yet for what was due before is asked for this in its place,
// and one that has not answered is not asked.
func (e *extender) extend(g *group, leases []*Lease, start clock.Instant) {
	var all []*extension
	together := leases[:0]
	for _, l := range leases {
		switch {
		case !l.extends():
			continue
		case l.isAlone():
			all = append(all, e.q.extendAlone(l, start, g))
		default:
			together = append(together, l)
		}
		l.arm()
	}
	for some := range slices.Chunk(together, wire.MaxGroup) {
		all = append(all, e.q.extendTogether(some, start, g))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.lanes {
		ln := &e.lanes[i]
		if ln.failed != nil && (ln.until > start || ln.underway > 0) { // it has an answer already, until it gives a better one
			for _, x := range all {
				x.replies[i] = *ln.failed
			}
		}
		if g.underway[i] == 0 {
			ln.waiting = slices.DeleteFunc(ln.waiting, func(x *extension) bool { return x.group == g })
			ln.waiting = append(ln.waiting, all...)
		}
	}
}

// ask has one node asked for a lease.
func (e *extender) ask(i int, x *extension) {
	e.mu.Lock()
	e.lanes[i].waiting = append(e.lanes[i].waiting, x)
	e.mu.Unlock()
	e.pump(i)
}

// pump sends what waits for a node, as far as it may be under way.
func (e *extender) pump(i int) {
	for x := e.next(i); x != nil; x = e.next(i) {
		x.send(i)
	}
}

// next takes what a node is to be asked next; nil for nothing now.
func (e *extender) next(i int) *extension {
	e.mu.Lock()
	defer e.mu.Unlock()
	ln := &e.lanes[i]
	if len(ln.waiting) == 0 || ln.underway >= maxUnderway || e.q.clock.Now() < ln.until {
		return nil
	}
	x := ln.waiting[0]
	ln.waiting = ln.waiting[1:]
	ln.count(i, x, 1)
	return x
}

// answered takes a node's answer to an extension, and what of it is to be tried once more. After a
// failure the node is left in peace for a while, longer each time. It returns what all have said.
//
// With taken the answer is that the request was taken back before it was sent: that is no failure.
func (e *extender) answered(i int, x *extension, rep *vote.Reply, again *extension, taken bool) (replies []vote.Reply) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ln := &e.lanes[i]
	ln.count(i, x, -1)
	if !taken {
		x.replies[i] = *rep
	}
	switch now := e.q.clock.Now(); {
	case taken:
	case rep.Verdict != wire.Failed:
		ln.failed, ln.pause, ln.until = nil, 0, 0
	case ln.until <= now: // else another has failed with it
		ln.failed = rep
		ttl := x.leases[0].TTL()
		for r := range e.groups {
			ttl = min(ttl, cmp.Or(r.ttl, ttl)) // the others wait for the node as well
		}
		ln.pause = min(max(2*ln.pause, ttl/retryFraction), ttl/extendFraction)
		ln.until = now.Add(node.Jitter(ln.pause, pauseJitter))
		e.signal()
	}
	if again != nil {
		ln.waiting = slices.Insert(ln.waiting, 0, again)
	}
	return slices.Clone(x.replies)
}

// count notes that an extension is under way to the node, or not any more. Called with the
// extender's mu held.
func (ln *lane) count(i int, x *extension, by int) {
	ln.underway += by * len(x.leases)
	if x.group != nil {
		x.group.underway[i] += by
	}
}

// pauseJitter keeps processes from asking a node that has failed all at once.
const pauseJitter = 0.1
