package jobs

import (
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// Clock is the clock of a machine that is ahead of the others, and leaps. Its timers run at the
// rate of the machine's: a leap changes what time it is, and not how long a timer takes.
type Clock struct {
	clockwork.Clock
	Ahead time.Duration
	Start time.Time // that leaps are counted from
	Leaps []plan.Leap
}

// Now is the machine's time.
func (c Clock) Now() time.Time {
	now := c.Clock.Now()
	ahead := c.Ahead
	for _, l := range c.Leaps {
		if !c.Start.Add(l.At).After(now) {
			ahead += l.By
		}
	}
	return now.Add(ahead)
}

// Since is time.Since by this clock.
func (c Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Until is time.Until by this clock.
func (c Clock) Until(t time.Time) time.Duration { return t.Sub(c.Now()) }
