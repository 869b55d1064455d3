package scheduler

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler/internal/agenda"
)

// Each replica repeats one sentence for each job: take the lease, read the record, run what the log
// owes now, write how it ended. docs/scheduling.md draws the states. A job sleeps in the agenda; a
// goroutine exists for it from when it wakes until it sleeps again: that is a turn.

const (
	// A tick is asked for ahead of its time, at a moment that job and identity spread, so that runs
	// spread over replicas. It is time for four round trips to nodes 40 ms away.
	leastAhead  = 200 * time.Millisecond
	spreadAhead = 150 * time.Millisecond
	// apart is how far a tick must be from the one before it to be asked for ahead of its time.
	apart = 2 * time.Second
	// A replica that fails asks again after a pause between these, which doubles.
	leastPause, mostPause = 50 * time.Millisecond, time.Second
)

// wake is called by the agenda: it begins a turn, unless one goes on or there is nothing to do.
func (j *job) wake(why agenda.Why) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if why == agenda.Stepped {
		j.view.readAt = time.Time{} // that is by another clock
	}
	switch {
	case j.ctx == nil: // it is stopped
	case j.busy:
		j.again = true
	default:
		j.busy = true
		ctx := j.ctx
		j.s.work.Go(func() { j.turn(ctx) })
	}
}

// kick has the job think at once, or again after what it does now.
func (j *job) kick() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.again = j.busy; !j.busy && j.ctx != nil {
		j.s.agenda.Set(&j.entry, time.Time{})
	}
}

// turn does what there is to do, until the job sleeps.
func (j *job) turn(ctx context.Context) {
	for {
		at := j.step(ctx)
		j.mu.Lock()
		if ctx.Err() == nil && (j.again || !at.IsZero() && !at.After(j.s.now())) {
			j.again = false
			j.mu.Unlock()
			continue
		}
		j.busy, j.again = false, false
		if j.ctx != nil && ctx.Err() != nil {
			at = j.s.now() // it was stopped and started again meanwhile
		}
		if j.ctx != nil && !at.IsZero() {
			j.s.agenda.Set(&j.entry, at)
		}
		j.mu.Unlock()
		return
	}
}

// step is one state of the loop. It returns when the next one is to be entered: the zero time if
// something else will wake the job.
func (j *job) step(ctx context.Context) time.Time {
	if err := j.unfit(ctx); err != nil {
		return j.standBy(ctx, err)
	}
	if j.toRead() {
		if err := j.read(ctx); err != nil {
			return j.retry(ctx, nil, err)
		}
	}
	if err := j.adopt(ctx); err != nil {
		return j.retry(ctx, nil, err)
	}
	known, now := j.known(), j.s.now()
	v := j.owed(known, now)
	at := now // for which that is
	if !v.Due && !v.Settles && !v.Over {
		ask := j.askAt(known, v)
		switch {
		case ask.After(now) && (j.unlocked || ask.Before(known.readAt.Add(lookEvery))):
			return ask
		case ask.IsZero() && j.unlocked:
			return time.Time{}
		case ask.IsZero(), ask.After(now):
			return known.readAt.Add(lookEvery)
		}
		at, v = v.Tick, j.owed(known, v.Tick)
	}
	switch {
	case v.Over:
		j.s.cfg.logger.InfoContext(ctx, "scheduler: a job is over: no tick is left", "job", j.name)
		j.s.isOver(j)
		return time.Time{}
	case j.isOld(known, v, now):
		if err := j.read(ctx); err != nil {
			return j.retry(ctx, &v, err)
		}
		j.tellTaken(ctx, v)
		return j.s.now()
	}
	return j.ask(ctx, v, at)
}

// unfit is why this replica may run no ticks of the job; nil if it may.
func (j *job) unfit(ctx context.Context) error {
	if j.unlocked && ctx.Err() == nil {
		return nil
	}
	return j.s.unfit(ctx)
}

// owed is the verdict without the lease, which only tells whether and when to ask.
func (j *job) owed(known view, at time.Time) joblog.Verdict {
	policy := j.cfg.policy
	v := joblog.Owed(known.rec, known.table, policy, at)
	if v.Why == joblog.Backfill { // which waits for the end of a pause, and is left out for none
		policy.Floor = known.floor
		v = joblog.Owed(known.rec, known.table, policy, at)
	}
	return v
}

// askAt is when a tick is to be asked for that is not due yet, which may be ahead of its time.
func (j *job) askAt(known view, v joblog.Verdict) time.Time {
	if v.At.IsZero() || !v.At.Equal(v.Tick) || j.triedAhead.Equal(v.Tick) || j.unlocked {
		return v.At
	}
	if before := known.table.Next(v.Tick.Add(-apart)); before.Before(v.Tick) {
		return v.At
	}
	return v.Tick.Add(-j.ahead)
}

// aheadOf spreads the replicas over the moments before a tick at which they ask for it.
func aheadOf(job, identity string) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(job + "\x00" + identity))
	return leastAhead + time.Duration(h.Sum32())%spreadAhead
}

// isOld reports whether the record was read before what it is to be acted on for: another replica
// may have done that. A tick that is asked for ahead can hardly have been taken.
func (j *job) isOld(known view, v joblog.Verdict, now time.Time) bool {
	last := v.Tick
	if n := len(v.Left); n > 0 && !v.Due {
		last = v.Left[n-1].Last
	}
	return !j.unlocked && (v.Due || len(v.Left) > 0) && known.readAt.Before(last) && !last.After(now)
}

// tellTaken tells of a tick that was to be asked for, and that another replica has.
func (j *job) tellTaken(ctx context.Context, v joblog.Verdict) {
	rec := j.known().rec
	if !v.Due || !rec.Run.Tick.Equal(v.Tick) || rec.Run.Attempt < v.Attempt {
		return
	}
	e := &SkipError{Job: j.name, Tick: j.s.local(v.Tick), Count: 1, Reason: SkipDone, By: rec.Run.By}
	if _, unended := rec.Unended(); unended {
		e.Reason, e.Pending = SkipHeld, j.comesBack()
	}
	j.skip(ctx, e)
}

// comesBack reports whether a tick that another replica runs may have to be run again.
func (j *job) comesBack() bool {
	p := j.cfg.policy
	return p.Delivery == joblog.AtLeastOnce || p.Overlap != joblog.OverlapSkip || p.CatchUp != joblog.CatchUpNone
}

// retry is the next step after the nodes could not be asked, or two replicas asked at once.
func (j *job) retry(ctx context.Context, v *joblog.Verdict, err error) time.Time {
	if ctx.Err() != nil {
		return time.Time{}
	}
	n := j.failures
	j.failures++
	tick := time.Time{}
	if v != nil && v.Due {
		tick = j.s.local(v.Tick)
	}
	e := newSkipError(j.name, tick, err)
	switch e.Pending = true; {
	case n > 0:
	case !tick.IsZero():
		j.skip(ctx, e)
	case v == nil && e.Reason == SkipOther:
		j.s.cfg.logger.WarnContext(ctx, "scheduler: how far a job has come could not be read: it is not run until that can be done", "job", j.name,
			"error.type", redlock.ErrorType(err), "error", err)
	}
	return j.s.now().Add(pauseAfter(n))
}

// pauseAfter is the pause after a number of failures in a row.
func pauseAfter(n int) time.Duration {
	pause := min(leastPause<<min(n, 10), mostPause)
	return pause/2 + rand.N(pause)
}

// standBy is the state of a replica that may run no ticks: what was missed meanwhile is in the
// record.
func (j *job) standBy(ctx context.Context, err error) time.Time {
	j.forget(ctx)
	if isAhead(err) {
		return j.s.now().Add(clockEvery)
	}
	return time.Time{}
}

// earliest is the earlier of two times, or the first if the second is zero.
func earliest(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}

// sleep waits, by the monotonic clock, and returns the cause if ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
