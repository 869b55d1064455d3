package elector

import (
	"context"
	"time"
)

// runWithin is how long after an Elector was made Run may be called without a word about it.
const runWithin = 30 * time.Second

// warnOfNoRun says, once, that nobody has called Run, which is needed beside gocron's scheduler.
func (e *Elector) warnOfNoRun() {
	if time.Since(e.made) < runWithin || !e.unrun.CompareAndSwap(false, true) {
		return
	}
	e.cfg.logger.WarnContext(context.Background(), "elector: IsLeader is asked, and Run was never called: this replica is no candidate, and never leads; "+
		"call Run in a goroutine, beside gocron's scheduler or whatever asks", "election", e.election, "identity", e.Identity(), "for", time.Since(e.made).Round(time.Second))
}
