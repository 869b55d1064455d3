package scheduler

import (
	"bytes"
	"context"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/redlock"
)

// begin reads the record and the pauses under the lease, and has a quorum of nodes take the grant
// of what is owed at a time, or of a run that was ordered, and tells what the log leaves out. It
// returns no run where nothing is owed.
func (j *job) begin(ctx context.Context, lease *redlock.Lease, at time.Time, order string) (*run, error) {
	known := j.known()
	r := &run{job: j, lease: lease, order: order, sent: j.s.steady(), read: j.s.now(), before: known.rec, table: known.table}
	r.since = r.sent
	policy, identity, token := j.cfg.policy, j.s.q.Identity(), uint64(0)
	if lease != nil {
		identity, token = lease.Identity(), lease.FencingToken()
		turn, states, err := j.record.Begin(ctx, lease, j.pause, j.s.pauseAll)
		if err != nil {
			return nil, err
		}
		rec, err := joblog.Parse(states[0].Value)
		if err != nil {
			return nil, err
		}
		if policy.Floor, err = j.floor(ctx, states[1:]); err != nil {
			return nil, err
		}
		if err := j.s.q.CheckClock(at); isAhead(err) && order == "" {
			return nil, err
		}
		r.turn, r.before, r.read = turn, j.withoutUnbegun(rec), states[0].Now
		j.learn(ctx, r.before, lease)
		j.watch(ctx, r.before)
	}
	v := joblog.Verdict{Due: true, Why: joblog.Ordered}
	if cut, unended := r.before.Unended(); unended {
		v.CutShort = cut
	}
	if order == "" {
		v = joblog.Owed(r.before, r.table, policy, at)
		if now := j.s.now(); !v.Due && at.After(now) {
			v = joblog.Owed(r.before, r.table, policy, now) // a pause may end before what is not due yet
		}
	}
	if !v.Due && !v.Settles {
		return nil, nil
	}
	r.rec, r.until = r.before, v.Until
	err := r.write(ctx, func(rec joblog.Record) joblog.Record {
		if !v.Due {
			return joblog.Settle(rec, r.table, v, at)
		}
		return joblog.Begin(rec, r.table, policy, v, joblog.Grant{Token: token, By: identity, At: at})
	})
	if err != nil {
		r.undo(ctx) // it may be in force
		return nil, err
	}
	j.learn(ctx, r.record(), lease)
	if cut := v.CutShort; !cut.Began.IsZero() {
		j.skip(ctx, &SkipError{Job: j.name, Tick: j.s.local(cut.Tick), Count: 1, Reason: SkipCutShort, By: cut.By})
	}
	j.tellLeft(ctx, v.Left)
	if !v.Due {
		return nil, nil
	}
	return r, nil
}

// undo has the nodes take the record of before: of a grant that is not acted on.
func (r *run) undo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	r.job.mu.Lock()
	r.job.never = unbegun{granted: r.record(), before: r.before}
	r.job.mu.Unlock()
	if r.write(ctx, func(joblog.Record) joblog.Record { return r.before }) == nil {
		r.job.learn(ctx, r.before, r.lease)
	}
}

// unbegun is a grant that this replica has not acted on, and that may be in force.
type unbegun struct{ granted, before joblog.Record }

// withoutUnbegun returns the record of before such a grant, if nobody has written after it.
func (j *job) withoutUnbegun(rec joblog.Record) joblog.Record {
	j.mu.Lock()
	never := j.never
	j.mu.Unlock()
	if is, err := rec.Encode(); err == nil && !rec.Run.Began.IsZero() {
		if granted, err := never.granted.Encode(); err == nil && bytes.Equal(is, granted) {
			return never.before
		}
	}
	return rec
}

// carryOut waits for the due time and has gocron run the task. An error says that the task was not
// called.
func (r *run) carryOut(ctx context.Context, due time.Time) error {
	ending, cancel := r.job.during(ctx)
	defer cancel(nil)
	if r.lease != nil {
		stop := context.AfterFunc(r.lease.Context(), func() { cancel(context.Cause(r.lease.Context())) })
		defer stop()
	}
	wait, began := max(0, due.Sub(r.job.s.now())), r.job.s.steady()
	if err := sleep(ending, wait); err != nil {
		return err
	}
	if stoodStill := r.job.s.steady() - began - wait; !r.until.IsZero() && due.Add(stoodStill).After(r.until) {
		return errTooOld
	}
	if err := r.mayBegin(ending); err != nil {
		return err
	}
	over := r.endForNext(ctx)
	err := r.perform(ending)
	over()
	if err == nil {
		r.end(context.WithoutCancel(ctx))
	}
	return err
}

const (
	// pauseFresh is how long before its run the pauses of a job are read. pause.Set waits for as
	// long, so nothing begins after it has returned.
	pauseFresh = pause.Fresh
	// mostPauseReads is how often they are. Nodes that never answer within pauseFresh are no reason
	// to run nothing.
	mostPauseReads = 3
)

// mayBegin reads the pauses again if they were asked for too long ago: after a wait for gocron, or
// in a process that stood still.
func (r *run) mayBegin(ctx context.Context) error {
	for n := 0; n < mostPauseReads && r.lease != nil && r.order == "" && r.job.s.steady()-r.sent > pauseFresh; n++ {
		r.sent = r.job.s.steady()
		if err := r.job.stillRuns(ctx, r.record().Run); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.lease != nil {
		return r.lease.Err() // by the clock: timers stand still with the process or the machine
	}
	return nil
}

// endForNext ends a run when the next tick comes, if the job's policy says so. over is to be called
// when gocron has done with the run.
func (r *run) endForNext(ctx context.Context) (over func()) {
	j, of := r.job, r.record().Run
	if j.cfg.policy.Overlap != joblog.OverlapCancel || isChain(r.table) || of.Why == joblog.Backfill {
		return func() {}
	}
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		at := later(of.Tick, j.s.now())
		for cancelled := false; !cancelled; {
			if at = r.table.Next(at); at.IsZero() || sleep(ctx, at.Sub(j.s.now())) != nil {
				return
			}
			ctx, timeout := context.WithTimeout(ctx, endTimeout)
			cancelled, _ = r.cancel(ctx, &CancelledError{Job: j.name, By: j.s.q.Identity(), Why: "the next tick has come (OverlapCancel)"})
			timeout()
		}
	}()
	return func() { end(); <-done }
}

// takenBack is the next step after a run whose task was not called: the nodes have the record of
// before, so that another replica has the tick.
func (j *job) takenBack(ctx context.Context, r *run, err error) time.Time {
	e := newSkipError(j.name, r.public().Due, err)
	r.giveBack(ctx)
	if ctx.Err() != nil {
		return time.Time{}
	}
	if e.Reason == SkipPaused || e.Err == errTooOld {
		return j.s.now() // the log says what becomes of it
	}
	n := j.refusals
	j.refusals++
	e.Pending = true
	if n == 0 || e.Reason == SkipRefused {
		j.skip(ctx, e)
	}
	return j.s.now().Add(min(leastPause<<min(n, 12), time.Minute))
}

// giveBack gives up a grant and the lease.
func (r *run) giveBack(ctx context.Context) {
	r.undo(ctx)
	r.release(context.WithoutCancel(ctx), nil)
}
