// Package clocks compares the wall clocks of the servers with each other.
//
// Tokens follow their median, as this process knows it, within the skew: a counter that was lost
// restarts from there, so one clock that is wrong leads nobody, and a server whose clock is set
// right again takes no token back.
//
// Of an even number it is the lower of the two in the middle. What follows the lower clock is not
// taken back by whoever corrects the higher one.
package clocks

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Config is what Clocks need to know.
type Config struct {
	Nodes, Need int                  // how many there are, and how many are a quorum
	Skew        func() time.Duration // how far clocks may be apart, which others may widen
}

// Clocks are those of the servers, as this process knows them. They are safe for concurrent use.
type Clocks struct {
	cfg Config

	mu    sync.Mutex
	known []node.Watch  // guarded by mu; of each node as it was sampled last
	wrong []*wire.Fault // guarded by mu; of each node; nil for none
	due   clock.Instant // guarded by mu; when to compare again
	all   clock.Instant // guarded by mu; until when nobody is judged before all are known; 0 before the first is

	changed chan struct{} // guarded by mu; closed when a clock becomes known

	middle atomic.Pointer[middle] // the lower median when clocks were compared last; nil before
}

// middle is where a median was at a time, of so many clocks, as a difference to this process's
// clock.
type middle struct {
	Bounds
	at    clock.Instant
	known int
	sure  bool // the unknown ones would not move it by more than the skew
}

const (
	compareEvery = time.Second     // while samples come
	awaitClocks  = 5 * time.Second // before some are compared without the others
)

// New makes Clocks, of which none is known yet.
func New(cfg Config) *Clocks {
	return &Clocks{cfg: cfg, known: make([]node.Watch, cfg.Nodes), wrong: make([]*wire.Fault, cfg.Nodes), changed: make(chan struct{})}
}

// Sampled takes over what is known of a node's clock.
func (c *Clocks) Sampled(i int, w node.Watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	news := !c.known[i].Known
	c.known[i] = w
	if c.all == 0 {
		c.all = w.At.Add(awaitClocks)
	}
	if news || w.At >= c.due {
		c.due = w.At.Add(compareEvery)
		c.compare(w.At)
	}
	if news {
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// Bounds are those of a difference between two clocks, or of a time.
type Bounds struct{ Lo, Hi time.Duration }

// median returns the lower median of the servers' clocks less this process's, and the upper one,
// which is the same where their number is odd. A sample counts for as long as clocks that time
// daemons adjust may not have moved by the tolerance since.
//
// Servers that are not known might move it. Where that is by more than the skew, it is not sure.
// Called with mu held.
func (c *Clocks) median(now clock.Instant) (m middle, upper Bounds) {
	los, his := make([]time.Duration, 0, len(c.known)), make([]time.Duration, 0, len(c.known))
	for i := range c.known {
		b, ok := c.bounds(i, now)
		if !ok {
			continue
		}
		los, his = append(los, b.Lo), append(his, b.Hi)
	}
	m = middle{at: now, known: len(los)}
	if m.known == 0 {
		return m, upper
	}
	slices.Sort(los)
	slices.Sort(his)
	l, u := (m.known-1)/2, m.known/2
	m.Bounds, upper = Bounds{los[l], his[l]}, Bounds{los[u], his[u]}
	all := (len(c.known) - 1) / 2
	least, most := all-(len(c.known)-m.known), all // where the lower median of all is among the known, at least and at most
	if least < 0 || most >= m.known {
		return m, upper
	}
	m.sure = his[most]-los[least] <= c.cfg.Skew() || m.known == len(c.known)
	return m, upper
}

// tolerance is by how much clocks may have moved since they were sampled for what is known of them
// to be used: the skew, and more where that is so small that a sample would count for a second or
// two. A hint that is a little low is better than none: without one, counters that were lost begin
// at 1.
func (c *Clocks) tolerance() time.Duration { return max(c.cfg.Skew(), leastTolerance) }

const leastTolerance = 100 * time.Millisecond

// bounds are those of a node's clock. Called with mu held.
func (c *Clocks) bounds(i int, now clock.Instant) (b Bounds, ok bool) {
	w := &c.known[i]
	moved := node.Slewed(now.Sub(w.At))
	return Bounds{w.Lo - moved, w.Hi + moved}, w.Known && moved < c.tolerance()
}

// Time returns between which times the median is now, as durations since 1970. It is not known
// before a quorum of servers is.
func (c *Clocks) Time(now clock.Instant) (b Bounds, ok bool) {
	m := c.middle.Load()
	if m == nil || m.known < c.cfg.Need {
		return b, false
	}
	moved := node.Slewed(now.Sub(m.at))
	return Bounds{m.Lo + time.Duration(now) - moved, m.Hi + time.Duration(now) + moved}, moved < c.tolerance()
}

// Hint is what counters are to become with a grant, in microseconds since 1970, if they are below:
// this process's wall clock, held within the skew around the median; or 0 where that is not known.
// The wall clocks of clients agree better than what they know of the servers', as a rule.
func (c *Clocks) Hint(now clock.Instant, wall time.Time) int64 {
	b, ok := c.Time(now)
	if !ok {
		return 0
	}
	held := max(time.Duration(wall.UnixNano()), b.Hi-c.cfg.Skew())
	return max(min(held, b.Lo+c.cfg.Skew()).Microseconds(), 0)
}

// Await waits until the median is sure, for a process that has just begun and has heard of clocks
// that differ: the first two that answer may be a right one and a wrong one. It ends with ctx, at
// the deadline, and when clocks are compared although some are unknown.
func (c *Clocks) Await(ctx context.Context, now, deadline clock.Instant) {
	if m := c.middle.Load(); m == nil || m.sure {
		return
	}
	c.mu.Lock()
	left := min(deadline, c.all).Sub(now)
	c.mu.Unlock()
	if left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	for {
		c.mu.Lock()
		sure, changed := c.middle.Load().sure, c.changed
		c.mu.Unlock()
		if sure {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// LeastToken is what the token of a lease is at least that is granted now: above each that was
// granted three skews ago, whatever counters were lost since.
func (c *Clocks) LeastToken(now clock.Instant) uint64 {
	b, ok := c.Time(now)
	if !ok {
		return 0
	}
	return uint64(max((b.Lo - c.cfg.Skew()).Microseconds(), 0))
}

// Latest is the latest time that is known, of this process's wall clock and the servers' median. A
// counter that leads it by more than a day is damaged, whatever the clock of its own server is.
func (c *Clocks) Latest(wall time.Time) time.Duration {
	latest := time.Duration(wall.UnixNano())
	if m := c.middle.Load(); m != nil {
		latest = max(latest, m.Hi+time.Duration(m.at)) // a moment ago
	}
	return latest
}

// Lead is by how much a counter leads the latest time that is known, where its server has answered
// at that time of its own; 0 for an answer without a time.
func (c *Clocks) Lead(counter uint64, server time.Duration, wall time.Time) time.Duration {
	if server == 0 {
		return 0
	}
	return time.Duration(min(counter, wire.MaxToken))*time.Microsecond - max(server, c.Latest(wall))
}

// UsualLead is by how much a counter may lead that only this library has written, while no clock
// was set back: a token is a skew above the median at most, and that a skew above what is known
// here.
func (c *Clocks) UsualLead() time.Duration { return 2*c.cfg.Skew() + compareEvery }

// MostLead is by how much a counter may lead that is followed at all.
const MostLead = wire.MaxLead + compareEvery

// compare finds out whose clock is wrong. Called with mu held.
func (c *Clocks) compare(now clock.Instant) {
	lower, upper := c.median(now)
	c.middle.Store(&lower)
	if lower.known < len(c.known) && now < c.all {
		return
	}
	for i := range c.known {
		var why *wire.Fault
		if b, ok := c.bounds(i, now); ok && lower.known > 1 {
			why = c.judge(b.Lo-lower.Hi, upper.Lo-b.Hi, &lower)
		}
		c.wrong[i] = why
	}
}

// judge returns what is wrong with a clock that is so much ahead of the lower median, and behind
// the upper one, at least.
func (c *Clocks) judge(ahead, behind time.Duration, m *middle) *wire.Fault {
	by, way := ahead, "ahead of"
	if behind > ahead {
		by, way = behind, "behind"
	}
	if by <= c.cfg.Skew() {
		return nil
	}
	whose := fmt.Sprintf("the median of %d servers", m.known)
	if m.known == 2 {
		whose = "the other one's that is known, and which of the two is wrong cannot be told"
	}
	return &wire.Fault{Condition: wire.ClockWrong, Detail: fmt.Sprintf("its wall clock is %v %s %s", by.Round(time.Millisecond), way, whose)}
}

// Wrong is what is wrong with a node's clock; nil for nothing.
func (c *Clocks) Wrong(i int) *wire.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrong[i]
}
