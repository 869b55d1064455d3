package scheduler

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
)

// Each replica repeats the same steps for each job: take the lease, read the record, run what the
// log owes now, write how it ended. docs/scheduling.md draws the states. A job sleeps with a timer.
// It has a goroutine only from when it wakes until it sleeps again, which is called a turn.

const (
	// A tick is asked for ahead of its time. The moment depends on the job and the identity, so
	// that runs spread over replicas. leastAhead is time for four round trips to nodes 40 ms away.
	// The spread is for many jobs that are due together: a millisecond for each, up to mostSpread.
	// The sum stays below the second that Quorum.CheckClock allows beside the skew.
	leastAhead  = 200 * time.Millisecond
	leastSpread = 150 * time.Millisecond
	mostSpread  = 750 * time.Millisecond
	// apart is the least time between a tick that is asked for ahead of its time and the tick
	// before it.
	apart = 2 * time.Second
	// A replica that fails asks again after a pause, which doubles from leastPause to mostPause.
	leastPause, mostPause = 50 * time.Millisecond, time.Second
	// clockEvery is how often the clock is looked at, which costs no I/O. clockStep is how far it
	// may depart from the monotonic clock before the jobs are woken.
	clockEvery = time.Second
	clockStep  = 50 * time.Millisecond
)

// wake begins a turn, unless the job is stopped. If a turn goes on, that one takes another step.
func (j *job) wake() {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch ctx := j.ctx; {
	case ctx == nil: // the job is stopped
	case j.busy:
		j.again = true
	default:
		j.busy = j.s.run(func() { j.turn(ctx) })
	}
}

// sleep has the job wake at a time, or at once if that time has passed. The caller holds mu.
func (j *job) sleep(at time.Time) {
	d := max(0, at.Sub(j.s.now()))
	if j.timer == nil {
		j.timer = time.AfterFunc(d, j.wake)
	} else {
		j.timer.Reset(d)
	}
}

// watchClock wakes every job when the wall clock has departed from the monotonic clock, by which
// jobs sleep. Then the wall clock was set, or runs at another rate, or the machine was suspended.
// After a mere pause of the process this is not needed: its jobs wake late, and see that on the
// clock.
func (s *Scheduler) watchClock(ctx context.Context) {
	wall, mono := s.now(), time.Now()
	for clock.Sleep(ctx, clockEvery) == nil {
		if parted := s.now().Sub(wall) - time.Since(mono); parted <= clockStep && parted >= -clockStep {
			continue
		}
		wall, mono = s.now(), time.Now()
		for _, j := range s.all() {
			j.lookBy(wall) // it was read by another clock
			j.wake()
		}
	}
}

// turn takes steps until the job sleeps.
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
			at = j.s.now() // the job was stopped and started again meanwhile
		}
		if j.ctx != nil && !at.IsZero() {
			j.sleep(at)
		}
		j.mu.Unlock()
		return
	}
}

// step takes one step of the loop. It returns the time of the next step, or zero if something else
// will wake the job.
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
	at := now // the time that v is for
	if !v.Due && !v.Settles && !v.Over {
		switch ask := j.askAt(known, v); {
		case !ask.IsZero() && !ask.After(now):
		case j.unlocked:
			return ask
		default:
			return joblog.Earlier(known.lookAt(), ask)
		}
		at, v = v.Tick, j.owed(known, v.Tick)
	}
	switch {
	case v.Over:
		j.s.cfg.logger.InfoContext(ctx, "scheduler: a job is over: no tick is left", "job", j.name)
		// The nodes must not forget the record: the next replica that makes the job would begin it
		// anew. So the record is kept for longer than the job, until the Scheduler stops. If a job
		// made anew at later would owe no tick, it is kept only until then. The hour is more than
		// clocks differ.
		if life := j.s.life(); life != nil && !j.unlocked {
			later := now.Add(time.Hour + j.cfg.policy.Window)
			if rec, table := joblog.Adopt(joblog.Record{}, j.def, later); joblog.Owed(rec, table, j.cfg.policy, later).Tick.IsZero() {
				var cancel context.CancelFunc
				life, cancel = context.WithDeadline(life, later)
				context.AfterFunc(life, cancel) // for go vet; life has ended by then
			}
			register.Keep(life, j.s.q, j.record)
			j.tellOver()
		}
		j.s.removeOver(j)
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

// unfit returns why this replica may run no ticks of the job; nil if it may.
func (j *job) unfit(ctx context.Context) error {
	switch own := j.Definition.Context; {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case own != nil && own.Err() != nil: // gocron calls the task no more
		return &SkipError{Job: j.name, Reason: SkipStopped, Err: context.Cause(own)}
	case j.unlocked:
		return nil
	}
	return cmp.Or(j.s.clockAhead(ctx), j.s.leader.check(ctx))
}

// clockAhead returns the error of this replica's clock if it is ahead of the nodes' clocks. It logs
// when the clock becomes wrong, or right again. A replica whose clock is too far ahead would take
// ticks before their time, so it runs none, and does not lead. A replica whose clock is behind
// comes to ticks that the others have run.
func (s *Scheduler) clockAhead(ctx context.Context) error {
	err := s.q.CheckClock(s.now())
	is := redlock.ErrorType(err)
	s.mu.Lock()
	was := s.clock
	s.clock = is
	s.mu.Unlock()
	log := s.cfg.logger
	switch {
	case is == was:
	case isAhead(err):
		log.WarnContext(ctx, "scheduler: this replica's clock is ahead of the nodes': it runs no ticks, and does not lead, until that is set right", "error", err)
	case err != nil:
		log.WarnContext(ctx, "scheduler: this replica's clock is behind the nodes': ticks that it runs are late, set it right", "error", err)
	default:
		log.InfoContext(ctx, "scheduler: this replica's clock is right again")
	}
	if isAhead(err) {
		return err
	}
	return nil
}

func isAhead(err error) bool {
	var wrong *redlock.ClockError
	return errors.As(err, &wrong) && wrong.Ahead > 0
}

// owed returns a verdict without the lease, which only says whether and when to ask.
func (j *job) owed(known view, at time.Time) joblog.Verdict {
	v := j.verdict(known.rec, known.table, time.Time{}, at)
	if v.Why == joblog.Backfill { // it waits for the end of a pause, and no pause leaves it out
		v = j.verdict(known.rec, known.table, known.floor, at)
	}
	if known.isYoung() && !v.Tick.Equal(known.rec.Run.Tick) { // it was hardly killed
		v.Settles = false
	}
	return v
}

// verdict returns what a record owes if pauses end at floor. A backfill belongs to the definition
// in the record. A replica with another definition neither runs nor ends the backfill, and for that
// replica the job is never over.
func (j *job) verdict(rec joblog.Record, table joblog.Table, floor, at time.Time) joblog.Verdict {
	policy, own := j.cfg.policy, rec.Words == j.def.Words
	if policy.Floor = floor; !own {
		rec.Fill = joblog.Fill{}
	}
	v := joblog.Owed(rec, table, policy, at)
	v.Over = v.Over && own
	return v
}

// askAt returns when to ask for a tick that is not due yet, which may be ahead of its time.
func (j *job) askAt(known view, v joblog.Verdict) time.Time {
	if v.At.IsZero() || !v.At.Equal(v.Tick) || j.triedAhead.Equal(v.Tick) || j.unlocked {
		return v.At
	}
	if before := known.table.Next(v.Tick.Add(-apart)); before.Before(v.Tick) {
		return v.At
	}
	return v.Tick.Add(-j.ahead())
}

// ahead returns how long before its time the job's tick is asked for.
func (j *job) ahead() time.Duration {
	j.s.mu.Lock()
	jobs := len(j.s.jobs)
	j.s.mu.Unlock()
	spread := min(max(time.Duration(jobs)*time.Millisecond, leastSpread), mostSpread)
	return leastAhead + time.Duration(j.place*float64(spread))
}

// placeOf returns a replica's place, from 0 to 1, among the replicas that ask for a tick ahead of
// its time. Identities that differ only in their last letter, as those of replicas do, get places
// far apart.
func placeOf(job, identity string) float64 {
	sum := sha256.Sum256([]byte(job + "\x00" + identity))
	return float64(binary.BigEndian.Uint32(sum[:])) / (1 << 32)
}

// isOld reports whether the record was read before the ticks that this replica is about to run or
// to settle: another replica may have done that. A tick that is asked for ahead can hardly have
// been taken.
func (j *job) isOld(known view, v joblog.Verdict, now time.Time) bool {
	last := v.Tick
	if n := len(v.Left); n > 0 && !v.Due {
		last = v.Left[n-1].Last
	}
	return !j.unlocked && (v.Due || len(v.Left) > 0) && known.readAt.Before(last) && !last.After(now)
}

// tellTaken tells of a tick that this replica was to ask for, and that another replica has.
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

// comesBack reports whether a tick of this job that another replica runs may have to run again.
func (j *job) comesBack() bool {
	p := j.cfg.policy
	return p.Delivery == joblog.AtLeastOnce || p.Overlap != joblog.OverlapSkip || p.CatchUp != joblog.CatchUpNone
}

// retry returns the time of the next step after the nodes could not be asked, or after two replicas
// asked at once.
func (j *job) retry(ctx context.Context, v *joblog.Verdict, err error) time.Time {
	if ctx.Err() != nil {
		return time.Time{}
	}
	n := j.failures
	j.failures++
	var tick time.Time
	if v != nil && v.Due {
		tick = j.s.local(v.Tick)
	}
	e := newSkipError(j.name, tick, err)
	if e.Pending = true; n == 0 && !tick.IsZero() {
		j.skip(ctx, e)
	}
	was := j.failed
	if j.failed = e.Reason; e.Reason == SkipOther && (n == 0 || was != e.Reason) {
		j.s.cfg.logger.WarnContext(ctx, "scheduler: how far a job has come could not be read or written: it is not run until that can be done", "job", j.name,
			"error.type", redlock.ErrorType(err), "error", err)
	}
	return j.s.now().Add(pauseAfter(n))
}

// pauseAfter returns the pause after a number of failures in a row, with jitter.
func pauseAfter(n int) time.Duration {
	pause := min(leastPause<<min(n, 10), mostPause)
	return pause/2 + rand.N(pause)
}

// standBy is the step of a replica that may run no ticks. Ticks that are missed meanwhile are found
// in the record.
func (j *job) standBy(ctx context.Context, err error) time.Time {
	j.forget(ctx)
	if isAhead(err) {
		return j.s.now().Add(clockEvery)
	}
	if ctx.Err() == nil && j.known().table == nil && !j.learns(ctx) {
		return j.s.now().Add(lookEvery)
	}
	return time.Time{}
}

// learns reads what the due times count from, which a replica tells of a job that it does not run.
// It returns false if that is not known yet.
func (j *job) learns(ctx context.Context) bool {
	states, err := j.readStates(ctx)
	if err != nil {
		return false
	}
	rec, err := joblog.Parse(states[0].Value, states[0].Now)
	if err != nil || rec.Words != j.def.Words {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.view.table = j.def.Table(rec.Since)
	return true
}
