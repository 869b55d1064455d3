// Package clocks compares the wall clocks of the servers with each other.
//
// Fencing tokens follow the median of these clocks, as this process knows it, within the skew. A
// counter that was lost restarts from there. A single clock that is wrong does not lead the tokens,
// so they do not fall when it is set right again.
//
// Of an even number of clocks the median is the lower of the two in the middle. Tokens that follow
// the lower clock do not fall when the higher one is corrected.
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

// Clocks is what this process knows of the servers' clocks. It is safe for concurrent use.
type Clocks struct {
	need int                  // how many are a quorum
	skew func() time.Duration // how far clocks may be apart; other processes may widen it

	mu    sync.Mutex
	known []node.Watch  // guarded by mu; the last sample of each node
	wrong []*wire.Fault // guarded by mu; what is wrong with each node's clock; nil for nothing
	due   clock.Instant // guarded by mu; when to compare again
	all   clock.Instant // guarded by mu; no clock is judged before that while some are unknown; set by a sample while none is known

	changed chan struct{} // guarded by mu; closed when a clock becomes known

	middle atomic.Pointer[middle] // the lower median when clocks were compared last; nil before the first sample
}

// middle is the lower median of the known clocks at a time, as a difference to this process's
// clock.
type middle struct {
	Bounds
	at    clock.Instant
	known int  // how many clocks are known
	sure  bool // the unknown clocks cannot move it by more than the skew
}

const (
	compareEvery = time.Second     // between two comparisons, while samples come
	awaitClocks  = 5 * time.Second // after a sample while no clock is known, until clocks are compared although some are unknown
)

// New makes a Clocks that knows no clock yet.
func New(nodes, need int, skew func() time.Duration) *Clocks {
	return &Clocks{need: need, skew: skew, known: make([]node.Watch, nodes), wrong: make([]*wire.Fault, nodes), changed: make(chan struct{})}
}

// Sampled takes over the latest sample of a node's clock.
func (c *Clocks) Sampled(i int, w node.Watch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	some := false
	for k := range c.known { // a sample that is too old is none any more
		_, c.known[k].Known = c.bounds(k, w.At)
		some = some || c.known[k].Known
	}
	if !some {
		c.all = w.At.Add(awaitClocks)
	}
	news := !c.known[i].Known
	c.known[i] = w
	if news || w.At >= c.due {
		c.due = w.At.Add(compareEvery)
		c.compare(w.At)
	}
	if news {
		close(c.changed)
		c.changed = make(chan struct{})
	}
}

// Bounds are the bounds of a difference between two clocks, or of a time.
type Bounds struct{ Lo, Hi time.Duration }

// median returns the lower and the upper median of the servers' clocks less this process's. They
// are the same if the number of known clocks is odd. A sample counts as long as time daemons cannot
// have moved the clocks by the tolerance since.
//
// Unknown clocks might move the median. If they might move it by more than the skew, it is not
// sure. Called with mu held.
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
	least, most := all-(len(c.known)-m.known), all // the least and the largest index that the lower median of all may have among the known
	if least < 0 || most >= m.known {
		return m, upper
	}
	m.sure = his[most]-los[least] <= c.skew() || m.known == len(c.known)
	return m, upper
}

// tolerance bounds how far clocks may have moved since their last sample; an older sample is not
// used. It is the skew, but not less than leastTolerance: with a very small skew a sample would
// count for a second or two only. A hint that is a little low is better than none: without a hint,
// counters that were lost begin at 1.
func (c *Clocks) tolerance() time.Duration { return max(c.skew(), leastTolerance) }

const leastTolerance = 100 * time.Millisecond

// bounds returns the bounds of a node's clock less this process's. It is not ok if there is no
// sample, or none that counts. Called with mu held.
func (c *Clocks) bounds(i int, now clock.Instant) (b Bounds, ok bool) {
	w := &c.known[i]
	moved := node.Slewed(now.Sub(w.At))
	return Bounds{w.Lo - moved, w.Hi + moved}, w.Known && moved < c.tolerance()
}

// Time returns the bounds of the median now, as durations since 1970. It is not ok before the
// clocks of a quorum are known, or if the last comparison is too old.
func (c *Clocks) Time(now clock.Instant) (b Bounds, ok bool) {
	m := c.middle.Load()
	if m == nil || m.known < c.need {
		return b, false
	}
	moved := node.Slewed(now.Sub(m.at))
	return Bounds{m.Lo + time.Duration(now) - moved, m.Hi + time.Duration(now) + moved}, moved < c.tolerance()
}

// Hint returns the value that a grant gives to a counter that is lower, in microseconds since 1970:
// this process's wall clock, held within the skew around the median; or 0 if the median is not
// known. The wall clock comes first because the wall clocks of clients agree better, as a rule,
// than what the clients know of the servers' clocks.
func (c *Clocks) Hint(now clock.Instant, wall time.Time) int64 {
	b, ok := c.Time(now)
	if !ok {
		return 0
	}
	held := max(time.Duration(wall.UnixNano()), b.Hi-c.skew())
	return max(min(held, b.Lo+c.skew()).Microseconds(), 0)
}

// Await waits until the median is sure. It is for a process that has just begun and knows clocks
// that differ: of the first two servers that answer, one may be right and one wrong. Await also
// returns if no clock is known, when ctx ends, at the deadline, and when awaitClocks has passed
// since the first sample, or the first after an outage.
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

// LeastToken returns the least token that a lease may have that is granted now; 0 if the median is
// not known. It is above every token that was granted three skews ago, even if counters were lost
// since.
func (c *Clocks) LeastToken(now clock.Instant) uint64 {
	b, ok := c.Time(now)
	if !ok {
		return 0
	}
	return uint64(max((b.Lo - c.skew()).Microseconds(), 0))
}

// Latest returns the later one of this process's wall clock and the servers' median, since 1970. A
// counter that is ahead of it by more than a day is damaged, whatever the clock of its own server
// says.
func (c *Clocks) Latest(wall time.Time) time.Duration {
	latest := time.Duration(wall.UnixNano())
	if m := c.middle.Load(); m != nil {
		latest = max(latest, m.Hi+time.Duration(m.at)) // as of the last comparison
	}
	return latest
}

// Lead returns how far a counter is ahead of the latest time that is known, the one in its server's
// answer included; that is 0 for an answer without a time.
func (c *Clocks) Lead(counter uint64, server time.Duration, wall time.Time) time.Duration {
	return time.Duration(min(counter, wire.MaxToken))*time.Microsecond - max(server, c.Latest(wall))
}

// UsualLead bounds the lead of a counter that only this library has written, while no clock was set
// back: a token is at most a skew above the median, and the median is at most a skew above the one
// that this process knows.
func (c *Clocks) UsualLead() time.Duration { return 2*c.skew() + compareEvery }

// MostLead bounds the lead of a counter that is followed at all. A counter is ahead of the clocks
// by no more than their difference, what it has counted (at most once a microsecond), and what the
// clocks were set back. With clocks that people set, that is hours.
const MostLead = 24*time.Hour + compareEvery

// compare stores the median, and finds the clocks that are wrong. Called with mu held.
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

// judge returns what is wrong with a clock that is at least so much ahead of the lower median, and
// at least so much behind the upper one; nil if both are within the skew.
func (c *Clocks) judge(ahead, behind time.Duration, m *middle) *wire.Fault {
	by, way := ahead, "ahead of"
	if behind > ahead {
		by, way = behind, "behind"
	}
	if by <= c.skew() {
		return nil
	}
	whose := fmt.Sprintf("the median of %d servers", m.known)
	if m.known == 2 {
		whose = "the other one's that is known, and which of the two is wrong cannot be told"
	}
	return &wire.Fault{Condition: wire.ClockWrong, Detail: fmt.Sprintf("its wall clock is %v %s %s", by.Round(time.Millisecond), way, whose)}
}

// Wrong returns what is wrong with a node's clock; nil for nothing.
func (c *Clocks) Wrong(i int) *wire.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrong[i]
}
