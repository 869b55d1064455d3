package scheduler

import (
	"context"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// A tick was missed if it came after the last one that was run, and after that run was over: ticks that come while a run goes on are
// overlapped, and treated as WithOverlap says. Of a run that was cut short nobody knows when it was over; the ticks that came since it began
// were missed. The nodes know what was run last, and when it was completed, by their own clocks.

// missedSince returns the ticks up to a time that were missed and are not too old, as far as s and the schedule tell. If the nodes
// know of no tick, none was missed.
func (j *job) missedSince(s redlock.Sequence, to time.Time) ([]time.Time, error) {
	last := s.Granted
	if j.cfg.delivery == redlock.AtLeastOnce {
		// What was granted and not completed is to be run again.
		if last = s.Completed; last == 0 && s.Granted > 0 {
			last = s.Granted - 1
		}
	}
	if last == 0 {
		return nil, nil
	}
	// From the last tick on, also if it is too old, because ticks of every second day, for example, are counted from it.
	ticks, err := j.ticks.between(time.UnixMilli(last).In(j.s.cfg.location), to.In(j.s.cfg.location))
	earliest := j.s.cfg.clock.Now().Add(-j.cfg.window)
	return slices.DeleteFunc(ticks, func(tick time.Time) bool {
		return tick.Before(earliest) || j.overlaps(s, tick)
	}), err
}

// overlaps reports whether the tick came while an earlier run went on, which has been completed since. A run that began more than
// HandoverGrace after its tick, or after the interval of a duration job, was late itself, and others wait for their turn behind it.
func (j *job) overlaps(s redlock.Sequence, tick time.Time) bool {
	if s.BeganAt.Sub(time.UnixMilli(s.Completed)) > j.ticks.every+HandoverGrace {
		return false
	}
	return s.Completed > 0 && s.Completed < tick.UnixMilli() && !s.BeganAt.IsZero() && tick.After(s.BeganAt) && !tick.After(s.CompletedAt)
}

// backlog returns the ticks that were missed, as a replica finds them that starts or was elected.
func (j *job) backlog(ctx context.Context) ([]time.Time, error) {
	s, err := j.s.q.Sequence(ctx, j.key)
	if err != nil {
		return nil, err
	}
	to := j.s.cfg.clock.Now()
	if j.ticks.every > 0 {
		// The interval that goes on has still its tick, unless this replica's next one is in a later interval.
		next, err := j.gocron.NextRun()
		if err != nil {
			return nil, err
		}
		if end := j.ticks.of(next).Add(-1); !next.IsZero() && end.Before(to) {
			to = end
		}
	}
	return j.missedSince(s, to)
}

// missedBefore returns the ticks that are to be run before this one, for which the lease was granted: with CatchUpAll, those that were
// missed. known is the tick before, as far as this replica knows; if that is the last that was run, nothing was missed.
func (j *job) missedBefore(lease *redlock.Lease, tick, known time.Time) ([]time.Time, error) {
	if j.cfg.catchUp != CatchUpAll {
		return nil, nil
	}
	s := lease.Previous()
	last := s.Granted
	if j.cfg.delivery == redlock.AtLeastOnce {
		last = s.Completed
	}
	if !known.IsZero() && last >= j.ticks.of(known).UnixMilli() {
		return nil, nil
	}
	ticks, err := j.missedSince(s, tick.Add(-1))
	return slices.DeleteFunc(ticks, func(t time.Time) bool { return !t.Before(tick) }), err
}

// quarries are ticks that may be run until they are too old.
func (j *job) quarries(ticks ...time.Time) []quarry {
	quarries := make([]quarry, len(ticks))
	for i, tick := range ticks {
		tick = j.ticks.of(tick)
		quarries[i] = quarry{tick: tick, until: tick.Add(j.cfg.window)}
	}
	return quarries
}
