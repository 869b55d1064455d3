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
	// phases is the number of parts of an interval. The leases that become due in one part are
	// extended together, at its beginning: eight times in an interval, whatever the number of
	// leases.
	phases = 8
	// maxUnderway bounds the leases for which a node has been asked and has not answered.
	// Extensions for a slow node wait here, where they can be taken back, and not in the network.
	maxUnderway = 4 * wire.MaxGroup
)

// extender has all leases of a Quorum that have not ended, and extends them when they are due,
// unless that is left to the caller. It needs one goroutine and one timer, whatever their number.
// Nodes are independent: no node waits for another, and a node is not asked for a lease again
// before it has answered, or failed.
type extender struct {
	q    *Quorum
	wake chan struct{} // capacity 1; signals that something may be due earlier than before

	mu     sync.Mutex
	closed bool              // guarded by mu
	groups map[rhythm]*group // guarded by mu
	lanes  []lane            // guarded by mu; one a node
}

// rhythm is the TTL to which leases are extended, and when.
type rhythm struct {
	ttl    time.Duration
	period time.Duration // 0 for never
	phase  clock.Instant // within the period
}

// group is the leases with the same rhythm.
type group struct {
	rhythm

	due      clock.Instant // guarded by extender.mu
	leases   []*Lease      // guarded by extender.mu
	underway []int         // guarded by extender.mu; for each node: extensions of the group that it has not answered
}

// lane is the extensions of one node that wait or are under way. Its fields are guarded by
// extender.mu.
type lane struct {
	waiting  []*extension
	underway int           // leases that the node has been asked for, and has not answered
	failed   *vote.Reply   // the node's last reply, if that was a failure
	pause    time.Duration // before the node is asked again, after a failure
	until    clock.Instant // the end of that pause
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
		due = l.attempt.since.Add(cfg.interval)
		due -= due % clock.Instant(part)
		r = rhythm{cfg.ttl, phases * part, due % clock.Instant(phases*part)}
	}
	g := e.groups[r]
	if g == nil {
		g = &group{rhythm: r, due: due, underway: make([]int, len(e.lanes))}
		e.groups[r] = g
		e.signal()
	}
	for i := range e.lanes { // the pause may have been set for a longer TTL
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

// close has the extender take no more leases, and returns those that it has.
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

// run extends leases when they are due, until the Quorum is closed.
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

// sweep sends the extensions that are due to each node, or has them wait for it, and returns when
// the next ones are due.
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

// extend makes the extensions of a group's leases, up to wire.MaxGroup leases in one request, and
// has them wait for each node. They replace extensions of the group that wait there already. A node
// that has not answered an extension of the group gets none.
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
		if ln.failed != nil && (ln.until > start || ln.underway > 0) { // that failure is its answer, until it gives a better one
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

// ask has an extension wait for one node.
func (e *extender) ask(i int, x *extension) {
	e.mu.Lock()
	e.lanes[i].waiting = append(e.lanes[i].waiting, x)
	e.mu.Unlock()
	e.pump(i)
}

// pump sends the extensions that wait for a node, up to maxUnderway.
func (e *extender) pump(i int) {
	for x := e.next(i); x != nil; x = e.next(i) {
		x.send(i)
	}
}

// next takes the extension that is to be sent to a node next; nil if there is none now.
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

// answered records a node's answer to an extension, and puts again, if there is one, first in the
// node's lane. After a failure the node is not asked for a while, longer each time. It returns the
// replies of all nodes.
//
// taken means that the request was taken back before it was sent: that is no failure.
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
	case ln.until <= now: // else another extension has failed before, and set the pause
		ln.failed = rep
		ttl := x.leases[0].TTL()
		for r := range e.groups {
			ttl = min(ttl, cmp.Or(r.ttl, ttl)) // all groups wait for the node: the shortest TTL counts
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

// count notes that an extension is under way to the node (by is 1), or not any more (-1). Called
// with the extender's mu held.
func (ln *lane) count(i int, x *extension, by int) {
	ln.underway += by * len(x.leases)
	if x.group != nil {
		x.group.underway[i] += by
	}
}

// pauseJitter keeps processes from asking a failed node again all at once.
const pauseJitter = 0.1
