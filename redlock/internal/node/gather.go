package node

import (
	"runtime"

	"github.com/tenure-dev/tenure/internal/clock"
)

// gather lets other goroutines run before the writer takes the queue, if there are many callers.
// Answers have woken the callers that waited for them. If these callers run before the writer,
// their next requests are one batch, and otherwise several small ones. It yields the processor and
// waits for nothing else. If the last batch had only one request, it does nothing at all.
type gather struct {
	several bool          // the last batch carried more than one request
	not     clock.Instant // no yield before that, because the processors are so busy that a yield takes long
}

const (
	// longYield is more than a yield takes if the callers are all that runs.
	longYield = nearTrip
	// yieldShare is how many times as long as a long yield the writer then goes without one, so
	// that long yields take a twentieth of the time at most.
	yieldShare = 20
)

func (g *gather) yield(c *clock.Clock) {
	now := c.Now()
	if !g.several || now < g.not {
		return
	}
	runtime.Gosched()
	if took := c.Now().Sub(now); took > longYield { // other work has the processors, and would run first with each yield
		g.not = now.Add(yieldShare * took)
	}
}
