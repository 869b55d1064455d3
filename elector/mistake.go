package elector

import (
	"context"
	"time"
)

// Mistakes that nobody would notice otherwise. Each is said once.

// runWithin is how long after an Elector was made Run may be called without a word about it.
const runWithin = 30 * time.Second

// warnOfNoRun says that nobody has called Run, which is needed beside gocron's scheduler.
func (e *Elector) warnOfNoRun() {
	if time.Since(e.made) < runWithin || !e.unrun.CompareAndSwap(false, true) {
		return
	}
	e.cfg.logger.WarnContext(context.Background(), "elector: IsLeader is asked, and Run was never called: this replica is no candidate, and never leads; "+
		"call Run in a goroutine, beside gocron's scheduler or whatever asks", "election", e.election, "identity", e.Identity(), "for", time.Since(e.made).Round(time.Second))
}

// When a candidate that waits looks who leads: seldom, as there are many candidates.
const (
	twinFirst = 2 * time.Minute
	twinAgain = time.Minute // after it saw its own name
	twinEvery = 10 * time.Minute
)

// watchForTwin looks, in the background, whether the leader is another Elector with this one's
// identity. A process that has died leads on until its lease expires, so the lease is to be
// extended meanwhile. stop ends that, and waits for nothing.
func (e *Elector) watchForTwin(ctx context.Context) (stop context.CancelFunc) {
	ctx, stop = context.WithCancel(ctx)
	if e.twin.Load() {
		return stop
	}
	e.posts.Go(func() {
		var last Leader
		var at time.Time
		for wait := twinFirst; ; {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return
			}
			now, err := e.Leader(ctx)
			if ctx.Err() != nil {
				return
			}
			if err != nil || now.Identity != e.Identity() {
				last, wait = Leader{}, twinEvery
				continue
			}
			if extended := now.TTL > last.TTL-time.Since(at)/2; now.Term == last.Term && extended {
				e.warnOfTwin(ctx, now)
				return
			}
			last, at, wait = now, time.Now(), twinAgain
		}
	})
	return stop
}

func (e *Elector) warnOfTwin(ctx context.Context, leader Leader) {
	if e.twin.CompareAndSwap(false, true) {
		e.cfg.logger.WarnContext(ctx, "elector: another Elector leads under this one's identity, so that nobody can tell who leads: "+
			"give each replica a name of its own (WithIdentity), or none", "election", e.election, "identity", e.Identity(), "term", leader.Term)
	}
}
