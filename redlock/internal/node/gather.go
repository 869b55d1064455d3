package node

import (
	"runtime"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
)

// gather lets others run before the writer takes what is queued, where callers are many. Answers
// have woken those who waited for them: what they ask next is one batch if they come to it first,
// and several small ones if not. It waits for nothing but the processors: nobody who has nothing to
// do is waited for, and where the last batch was one caller's it does nothing at all.
type gather struct {
	several bool          // the last batch carried more than one request
	not     clock.Instant // processors are so busy that it takes long: not before this
}

const (
	// longYield is more than it takes where the callers are all that runs.
	longYield = nearTrip
	// yieldShare is what part of the time may go by with those that take longer.
	yieldShare = 20
)

func (g *gather) yield(c *clock.Clock) {
	now := c.Now()
	if !g.several || now < g.not {
		return
	}
	runtime.Gosched()
	if took := c.Now().Sub(now); took > longYield {
		g.busy(now, took)
	}
}

// busy has it not done for a while: other work has the processors, and comes before this each time.
func (g *gather) busy(now clock.Instant, took time.Duration) {
	g.not = now.Add(yieldShare * took)
}
