package elector

import (
	"context"
	"time"
)

// runWithin is the time after New in which a missing call of Run is not reported.
const runWithin = 30 * time.Second

// warnOfNoRun logs, once, that Run was not called, if it was not. A program with gocron's scheduler
// needs the call, too.
func (e *Elector) warnOfNoRun() {
	if e.ran.Load() || time.Since(e.made) < runWithin || !e.ran.CompareAndSwap(false, true) {
		return
	}
	e.cfg.logger.WarnContext(context.Background(), "elector: IsLeader is asked, and Run was never called: this replica is no candidate, and never leads; "+
		"call Run in a goroutine, beside gocron's scheduler or whatever asks", "election", e.election, "identity", e.Identity(), "for", time.Since(e.made).Round(time.Second))
}
