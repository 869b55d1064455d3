package scheduler

import (
	"context"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

// begin reads the record and the pauses under the lease. Then it has a quorum of nodes take the
// grant of the tick that is owed at a time, or of a run that was ordered, and tells which ticks the
// log leaves out. If nothing is owed, or there is no place for the run, it releases the lease and
// returns no run.
func (j *job) begin(ctx context.Context, lease *redlock.Lease, at time.Time, order string, placed bool) (begun *run, err error) {
	defer func() {
		if begun == nil {
			j.release(ctx, lease)
		}
	}()
	known := j.known()
	r := &run{job: j, lease: lease, order: order, writing: make(chan struct{}, 1), sent: j.s.steady(), own: j.s.now(), before: known.rec, table: known.table}
	r.since, r.read = r.sent, r.own
	r.due = r.sent + min(max(0, at.Sub(r.own)), leastAhead+mostSpread)
	floor, identity, token := time.Time{}, j.s.q.Identity(), uint64(0)
	if lease != nil {
		identity, token = lease.Identity(), lease.FencingToken()
		var states []register.State
		if r.turn, states, err = j.record.Begin(ctx, lease, j.pause, j.s.pauseAll); err != nil {
			return nil, err
		}
		if r.before, floor, err = j.saw(ctx, lease, states); err != nil {
			return nil, err
		}
		if err := j.s.q.CheckClock(at); isAhead(err) && order == "" {
			return nil, err
		}
		r.read, r.table = states[0].Now, j.known().table
	}
	v := joblog.Verdict{Due: true, Why: joblog.Ordered}
	if limit := j.cfg.policy.Limit; order != "" && limit > 0 && r.before.Runs >= limit {
		return nil, &SkipError{Job: j.name, Reason: SkipStopped, Err: gocron.ErrJobNotFound} // no run is left: it is about to be removed
	}
	if cut, unended := r.before.Unended(); unended && lease != nil {
		v.CutShort = cut
	}
	if order == "" {
		v = j.verdict(r.before, r.table, floor, at)
		if now := j.s.now(); !v.Due && at.After(now) {
			v = j.verdict(r.before, r.table, floor, now) // a pause may be ended before at
		}
	}
	if v.Due = v.Due && placed; !v.Due && !v.Settles {
		return nil, nil
	}
	settled := joblog.Settle(r.before, r.table, v, at)
	next := settled
	if v.Due {
		next = joblog.Begin(r.before, r.table, j.cfg.policy, v, joblog.Grant{Token: token, By: identity, At: joblog.Later(at, j.s.now())})
	}
	r.until = v.Until
	if err = r.write(ctx, func(joblog.Record) joblog.Record { return next }); err != nil {
		r.undo(ctx) // the grant may be in force
		return nil, err
	}
	r.before = settled // ticks told now are not told again, even if the run is undone
	r.wrote(ctx, r.record())
	if cut := v.CutShort; !cut.Began.IsZero() {
		j.skip(ctx, &SkipError{Job: j.name, Tick: j.s.local(cut.Tick), Count: 1, Reason: SkipCutShort, By: cut.By})
		j.tellCut(cut)
	}
	j.tellLeft(ctx, v.Left)
	if !v.Due {
		return nil, nil
	}
	return r, nil
}

// undo has the nodes take the record of before, in place of a grant that is not acted on.
func (r *run) undo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	granted, _ := r.record().Encode()
	r.job.mu.Lock()
	r.job.never = unbegun{granted, r.before}
	r.job.mu.Unlock()
	if r.write(ctx, func(joblog.Record) joblog.Record { return r.before }) == nil {
		r.wrote(ctx, r.before)
	}
}

// unbegun is a grant that this replica has not acted on, and that may be in force.
type unbegun struct {
	granted []byte
	before  joblog.Record
}

// carryOut has gocron run the task at a time. An error means that the task was not called. Then the
// nodes have been asked to take the record of before, and the lease is released.
func (r *run) carryOut(ctx context.Context, at time.Time) (err error) {
	defer func() {
		if err != nil {
			r.undo(ctx)
			r.release(context.WithoutCancel(ctx), nil)
		}
	}()
	ending, cancel := r.job.during(ctx, r.lease)
	defer cancel(nil)
	r.job.s.granted(r, at)
	over := r.endForNext(ctx)
	err = r.perform(ending, at)
	over()
	if err == nil {
		r.end(context.WithoutCancel(ctx))
	} else {
		r.job.s.decided(r, false)
	}
	return err
}

// await waits until a tick is due, by a clock that never steps, and returns why the task may not be
// called then. Delays since the lease was taken make the tick older.
func (r *run) await(ctx context.Context, at time.Time) error {
	steady := r.job.s.steady
	if again := r.due - steady() - readAgain; again > 0 && r.due-r.sent > pauseFresh {
		if err := clock.Sleep(ctx, again); err != nil {
			return err
		}
		if err := r.readPauses(ctx); err != nil {
			return err
		}
	}
	if err := clock.Sleep(ctx, r.due-steady()); err != nil {
		return err
	}
	if late := steady() - r.due; !r.until.IsZero() && at.Add(late).After(r.until) {
		return errTooOld
	}
	return r.mayBegin(ctx)
}

const (
	// pauseFresh is how old the read of a job's pauses may be when its run begins. pause.Set waits
	// for as long, so no run of a paused tick begins after Set has returned.
	pauseFresh = pause.Fresh
	// mostPauseReads bounds how often the pauses are read again. A run begins even if nodes never
	// answer within pauseFresh.
	mostPauseReads = 3
	// readAgain is how long before its time a run reads the pauses again, if it was granted so
	// early that the first read would be too old.
	readAgain = 200 * time.Millisecond
)

// mayBegin returns why the task may not be called now; nil if it may. It reads the pauses again if
// the last read was sent too long ago: gocron kept the run waiting, or the process stood still.
func (r *run) mayBegin(ctx context.Context) error {
	for n := 0; n < mostPauseReads && r.lease != nil && r.order == "" && r.job.s.steady()-r.sent > pauseFresh; n++ {
		if err := r.readPauses(ctx); err != nil {
			return err
		}
	}
	return r.over(ctx)
}

// over returns why the task may not be called any more; nil if it may. It looks at the lease by the
// clock, because timers stop while the process or the machine does.
func (r *run) over(ctx context.Context) error {
	if ctx.Err() == nil && r.lease != nil {
		return r.lease.Err()
	}
	return context.Cause(ctx)
}

// readPauses reads the pauses again, and returns an error if the run is paused.
func (r *run) readPauses(ctx context.Context) error {
	r.sent = r.job.s.steady()
	floor, err := r.job.readPauses(ctx)
	if err != nil {
		return err
	}
	of := r.record().Run
	if of.Why == joblog.Backfill { // its tick was due long ago: it waits for the end of the pause
		of.Tick = r.job.s.now()
	}
	if !of.Tick.After(floor) {
		return &SkipError{Job: r.job.name, Tick: r.public().Due, Count: 1, Reason: SkipPaused}
	}
	return nil
}

// readPauses reads the pauses of the job and of all jobs, and returns when they end.
func (j *job) readPauses(ctx context.Context) (floor time.Time, err error) {
	if j.unlocked { // a job that runs everywhere is never paused
		return floor, nil
	}
	states, err := j.readStates(ctx)
	if err != nil {
		return floor, err
	}
	floor, err = j.sawPauses(states[1:])
	j.tell(ctx)
	return floor, err
}

// endForNext ends a run when the next tick that is to be run comes, if the job's policy says so.
// The caller calls over when gocron is done with the run.
func (r *run) endForNext(ctx context.Context) (over func()) {
	j, rec := r.job, r.record()
	p, of := j.cfg.policy, rec.Run
	if p.Overlap != joblog.OverlapCancel || isChain(r.table) || of.Why == joblog.Backfill || p.Limit > 0 && rec.Runs >= p.Limit {
		return func() {}
	}
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		at := r.table.Next(joblog.Later(of.Tick, j.s.now()))
		if p.CatchUp == joblog.CatchUpAll && (of.Why == joblog.Late || of.Why == joblog.Again) && !at.IsZero() { // it has as long as a run on time
			at = joblog.Later(at, r.table.Next(of.Tick).Add(of.Began.Sub(of.Tick)))
		}
		for cancelled := false; !cancelled && !at.IsZero(); {
			wait := at.Sub(j.s.now())
			if j.unfit(ctx) != nil { // a clock that is ahead shows ticks that have not come
				wait = clockEvery
			}
			if wait > 0 {
				if clock.Sleep(ctx, min(wait, clockEvery)) != nil {
					return
				}
				continue // the clock may have been set
			}
			within, timeout := context.WithTimeout(ctx, endTimeout)
			floor, err := j.readPauses(within)
			if err == nil && at.After(floor) {
				cancelled, err = r.cancel(within, &CancelledError{Job: j.name, By: j.s.q.Identity(), Why: "the next tick has come (OverlapCancel)"})
			}
			timeout()
			if err == nil || clock.Sleep(ctx, clockEvery) != nil { // else the nodes are asked again
				at = r.table.Next(joblog.Later(at, j.s.now()))
			}
		}
	}()
	return func() { end(); <-done }
}
