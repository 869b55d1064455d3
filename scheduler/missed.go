package scheduler

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// A tick was missed if it came after the last one that was run, and was not overlapped. Of a run
// that was cut short nobody knows how long it would have taken: the ticks after it were missed. The
// nodes know what was run last, and how long it took.

// missedSince returns the ticks up to a time that were missed and are not too old, as far as s and
// the schedule tell. It reports those that were overlapped. If the nodes know of no tick, none was
// missed.
func (j *job) missedSince(s redlock.Sequence, to time.Time) []time.Time {
	// What was granted and not completed is asked for, also at most once: the grant may be that of
	// an attempt that failed, and is still on some nodes. They refuse it if it was a real one.
	last := s.Completed //mutant:failed-attempt-ends-a-search
	if last == 0 && s.Granted > 0 {
		last = s.Granted - 1
	}
	settled := j.settled()
	now := j.s.cfg.clock.Now()
	if _, once := j.ticks.table.(instants); once && last == 0 {
		last = now.Add(-j.cfg.window).UnixMilli() - 1 // its times are known from the beginning
	}
	if last == 0 {
		return nil
	}
	// From the last tick on, also if it is too old, because ticks of every second day, for example,
	// are counted from it.
	ticks := j.ticks.between(time.UnixMilli(last).In(j.s.cfg.location), to.In(j.s.cfg.location))
	return slices.DeleteFunc(ticks, func(tick time.Time) bool {
		if j.expiry(tick).Before(now) || !tick.After(settled) { //mutant:settled-tick-asked-again
			return true
		}
		overlapped := j.overlapped(s, tick)
		if overlapped {
			j.s.skip(context.Background(), &SkipError{Job: j.name, Tick: tick, Reason: SkipOverlap})
		}
		return overlapped
	})
}

// overlapped reports whether the last completed run takes the tick's time. Ticks are compared, not
// moments: a run that began late overlaps the ticks that it would have overlapped at its own time,
// and no others, so what a late run holds up is run after it, and a job that cannot keep up with
// its schedule still catches up. The phase of a duration job cancels out. A tick that was granted
// before, and cut short, was not overlapped; one before the last grant may have been granted too,
// because the nodes know of the last two grants only. With OverlapQueue the last tick that is due
// waits.
func (j *job) overlapped(s redlock.Sequence, tick time.Time) bool {
	number := tick.UnixMilli()
	if s.Completed == 0 || number <= s.Completed || number <= s.Granted || s.BeganAt.IsZero() { //mutant:cut-tick-is-overlapped,cut-tick-behind-an-attempt-is-overlapped
		return false
	}
	if tick.Sub(time.UnixMilli(s.Completed)) > s.CompletedAt.Sub(s.BeganAt) { //mutant:late-run-overlaps
		return false
	}
	if j.cfg.overlap == OverlapSkip {
		return true
	}
	later := j.ticks.between(tick, j.s.cfg.clock.Now())
	return len(later) > 0 //mutant:slow-queue-never-recovers
}

// backlog returns the ticks that were missed, as a replica finds them that starts or was elected.
func (j *job) backlog(ctx context.Context) ([]time.Time, error) {
	s, err := j.s.q.Sequence(ctx, j.key)
	if err != nil {
		return nil, err
	}
	to := j.s.cfg.clock.Now()
	if j.ticks.every > 0 {
		// The interval that goes on has still its tick, unless this replica's next one is in a
		// later interval.
		next, err := j.gocron.NextRun()
		if err != nil {
			return nil, err
		}
		if end := j.ticks.of(next).Add(-1); !next.IsZero() && end.Before(to) { //mutant:interval-in-progress-forgotten
			to = end
		}
	}
	return j.missedSince(s, to), nil
}

// missedBefore returns the ticks that are to be run before this one, for which the lease was
// granted: with CatchUpAll, those that were missed. known is the tick before, as far as this
// replica knows; if that is the last that was run, nothing was missed.
func (j *job) missedBefore(lease *redlock.Lease, tick, known time.Time) []time.Time {
	if j.cfg.catchUp != CatchUpAll {
		return nil
	}
	s := lease.Previous()
	if before := j.ticks.of(known); !known.IsZero() && (s.Completed >= before.UnixMilli() || !before.After(j.settled())) {
		return nil
	}
	ticks := j.missedSince(s, tick.Add(-1))
	return slices.DeleteFunc(ticks, func(t time.Time) bool { return !t.Before(tick) })
}

// quarries describes ticks that were not run for one reason.
func (j *job) quarries(why Reason, ticks ...time.Time) []quarry {
	quarries := make([]quarry, len(ticks))
	for i, tick := range ticks {
		quarries[i] = j.wanted(tick, why)
	}
	return quarries
}

// settle notes that ticks up to this one are granted to nobody any more: one of them was refused as
// done, or was granted at most once.
func (j *job) settle(tick time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if tick.After(j.done) {
		j.done = tick
	}
}

func (j *job) settled() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.done
}

// began notes that this replica runs a tick.
func (j *job) began(tick time.Time) {
	if j.cfg.delivery == redlock.AtMostOnce {
		j.settle(tick)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if tick.After(j.latest) {
		j.latest = tick
	}
}

// ownAttempt reports whether what refuses a tick is an attempt of this replica that failed, and is
// still on some nodes, rather than a run.
func (j *job) ownAttempt(tick time.Time, err error) bool {
	var held *redlock.HeldError
	var done *redlock.DoneError
	self := errors.As(err, &held) && held.Self && held.Sequence == tick.UnixMilli() ||
		errors.As(err, &done) && done.Self && done.Granted == tick.UnixMilli()
	j.mu.Lock()
	defer j.mu.Unlock()
	return self && tick.After(j.latest)
}

// notCompleted reports whether a tick was refused because it was granted, and nobody has completed
// it.
func (j *job) notCompleted(tick time.Time, err error) bool {
	var done *redlock.DoneError
	if !errors.As(err, &done) || done.Granted != tick.UnixMilli() || done.Completed >= done.Granted {
		return false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return tick.After(j.latest)
}

// why explains an error of an acquisition of a tick, and learns from it. own says whether it may be
// for an attempt that failed.
func (j *job) why(tick time.Time, err error, own bool) *SkipError {
	e := skipped(j.name, tick, tick.UnixMilli(), err)
	switch {
	case own && j.ownAttempt(tick, err): //mutant:own-attempt-taken-for-a-run
		e.Reason = SkipTimeout
	case own && j.cfg.catchUp != CatchUpNone && j.notCompleted(tick, err): //mutant:failed-attempt-of-another-is-a-run
		e.Reason = SkipHeld // its holder has died, or its attempt failed and is being taken back
	case e.Reason == SkipDone:
		j.settle(tick)
	}
	return e
}
