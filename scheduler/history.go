package scheduler

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// A tick was missed if it came after the last one that was run, and was not overlapped. How long a
// run would have taken that was cut short is not known, so the ticks after it were missed. The
// nodes know what was run last, and how long it took.

// history is what this replica knows of the ticks that were run, here and elsewhere: by its own
// runs and refusals, and by what it reads from the nodes.
type history struct {
	job *job

	mu     sync.Mutex
	closed time.Time // guarded by mu; ticks up to this one are granted to no replica any more, or not asked for by this one
	latest time.Time // guarded by mu; the last tick that this replica began to run

	// guarded by mu; ticks that came during runs that are no ticks (RunNow), of which the nodes
	// keep no record; ascending, the last MaxCatchUp of them
	beside []time.Time
}

// missedSince returns the ticks up to a time that were missed and are not too old, as far as s and
// the schedule tell. It reports those that were overlapped. If the nodes know of no tick, none was
// missed, and if the last grant was one of another schedule, none of before this job was made.
func (h *history) missedSince(s redlock.SequenceState, to time.Time) []time.Time {
	j := h.job
	// What was granted and not completed is asked for, also at most once: the grant may be that of
	// an attempt that failed, and is still on some nodes. They refuse it if it was a real one.
	last := s.Completed
	closed := h.closedUpTo()
	now := j.s.cfg.clock.Now()
	_, once := j.ticks.table.(instants)
	var ticks []time.Time
	switch {
	case s.Label != "" && s.Label != j.labels.own:
		// The ticks of another schedule say nothing of this one's before the job was made.
		last = max(last, j.labels.began.UnixMilli())
	case last != 0:
	case once:
		last = now.Add(-j.cfg.window).UnixMilli() - 1 // its times are known from the beginning
	case s.Granted > 0:
		last = s.Granted
		if first := h.at(last); !first.After(to) && !j.ticks.random && j.ticks.has(first) {
			ticks = append(ticks, first)
		}
	default:
		return nil
	}
	// From the last tick on, also if it is too old, because ticks of every second day, for example,
	// are counted from it.
	ticks = append(ticks, j.ticks.between(h.at(last), to.In(j.s.cfg.location))...)
	if len(ticks) >= MaxCatchUp && ticks[0].After(closed) && j.cfg.catchUp == CatchUpAll && j.expiry(ticks[0]).After(now) &&
		len(j.ticks.between(h.at(last), ticks[0].Add(-1))) > 0 {
		j.s.cfg.logger.WarnContext(j.s.cfg.context, "scheduler: more ticks were missed than a job catches up: those before are not run",
			"job", j.name, "most", MaxCatchUp, "from", ticks[len(ticks)-MaxCatchUp])
	}
	return slices.DeleteFunc(ticks, func(tick time.Time) bool {
		if j.expiry(tick).Before(now) || !tick.After(closed) {
			return true
		}
		overlapped := h.overlapped(s, tick)
		if overlapped {
			j.s.skip(context.Background(), &SkipError{Job: j.name, Tick: tick, Reason: SkipOverlap})
		}
		return overlapped
	})
}

// at is the tick with a number.
func (h *history) at(number int64) time.Time {
	return time.UnixMilli(number).In(h.job.s.cfg.location)
}

// overlapped reports whether the last completed run takes the tick's time. Ticks are compared, not
// moments: a run that began late overlaps the ticks that it would have overlapped at its own time,
// and no others, so what a late run holds up is run after it, and a job that cannot keep up with
// its schedule still catches up. The phase of a duration job cancels out. A tick that was granted
// before, and cut short, was not overlapped; one before the last grant may have been granted too,
// because the nodes know of the last two grants only. With OverlapQueue the last tick that is due
// waits. A tick that came during a run that is no tick was overlapped by that.
func (h *history) overlapped(s redlock.SequenceState, tick time.Time) bool {
	j := h.job
	number := tick.UnixMilli()
	if s.Completed == 0 || number <= s.Completed || number <= s.Granted || s.BeganAt.IsZero() {
		return false
	}
	if !h.isBeside(tick) && tick.Sub(time.UnixMilli(s.Completed)) > s.CompletedAt.Sub(s.BeganAt) {
		return false
	}
	if j.cfg.overlap == OverlapSkip {
		return true
	}
	later := j.ticks.between(tick, j.s.cfg.clock.Now())
	return len(later) > 0
}

// missed asks the nodes which ticks were missed, for a replica that starts or was elected.
func (h *history) missed(ctx context.Context) ([]time.Time, error) {
	j := h.job
	s, err := j.s.q.Sequence(ctx, j.key)
	if err != nil {
		return nil, err
	}
	to := j.s.cfg.clock.Now()
	if j.ticks.every > 0 && !j.ticks.isOver(to) {
		// The interval that goes on has still its tick, unless this replica's next one is in a
		// later interval. A next one of the past is that of before a stop.
		next, err := j.gocron.NextRun()
		if err != nil {
			return nil, err
		}
		if next.Before(to) && !next.IsZero() {
			next = to
		}
		if end := j.ticks.of(next).Add(-1); !next.IsZero() && end.Before(to) {
			to = end
		}
	}
	return h.missedSince(s, to), nil
}

// missedBefore returns the ticks that are to be run before this one, for which the lease was
// granted: with CatchUpAll, those that were missed. known is the tick before, as far as this
// replica knows; if that is the last that was run, nothing was missed.
func (h *history) missedBefore(lease *redlock.Lease, tick, known time.Time) []time.Time {
	j := h.job
	if j.cfg.catchUp != CatchUpAll {
		return nil
	}
	s := lease.Previous()
	if before := j.ticks.of(known); !known.IsZero() && (s.Completed >= before.UnixMilli() || !before.After(h.closedUpTo())) {
		return nil
	}
	ticks := h.missedSince(s, tick.Add(-1))
	return slices.DeleteFunc(ticks, func(t time.Time) bool { return !t.Before(tick) })
}

// closeUpTo notes that ticks up to this one are granted to no replica any more: one of them was
// refused as done or paused, or was granted at most once.
func (h *history) closeUpTo(tick time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if tick.After(h.closed) {
		h.closed = tick
	}
}

func (h *history) closedUpTo() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// began notes that this replica runs a tick.
func (h *history) began(tick time.Time) {
	j := h.job
	if j.cfg.delivery == redlock.AtMostOnce {
		h.closeUpTo(tick)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if tick.After(h.latest) {
		h.latest = tick
	}
}

// ownAttempt reports whether what refuses a tick is an attempt of this replica that failed, and is
// still on some nodes, rather than a run.
func (h *history) ownAttempt(tick time.Time, err error) bool {
	var held *redlock.HeldError
	var done *redlock.DoneError
	self := errors.As(err, &held) && held.Self && held.Sequence == tick.UnixMilli() ||
		errors.As(err, &done) && done.Self && done.Granted == tick.UnixMilli()
	h.mu.Lock()
	defer h.mu.Unlock()
	return self && tick.After(h.latest)
}

// mayBeOrphan reports whether a tick was refused because it was granted, and no replica has
// completed it: its run goes on, or is an orphan, or it was an attempt that failed.
func (h *history) mayBeOrphan(tick time.Time, err error) bool {
	var done *redlock.DoneError
	if !errors.As(err, &done) || done.Granted != tick.UnixMilli() || done.Completed >= done.Granted {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return tick.After(h.latest)
}

// explain says why a tick was not granted, and learns from it. attempt says whether what refuses it
// may be an attempt that failed.
func (h *history) explain(tick time.Time, err error, attempt bool) *SkipError {
	j := h.job
	e := newSkipError(j.name, tick, err)
	switch {
	case attempt && h.ownAttempt(tick, err):
		e.Reason = SkipTimeout
	case attempt && j.cfg.catchUp != CatchUpNone && h.mayBeOrphan(tick, err):
		e.Reason = SkipHeld // its holder has died, or its attempt failed and is being taken back
	case e.Reason == SkipDone, e.Reason == SkipPaused:
		h.closeUpTo(tick)
	case e.Reason == SkipOverlap && isNoTick(err):
		h.cameBeside(tick)
	}
	return e
}

// isNoTick reports whether a tick was refused because of a run that is none.
func isNoTick(err error) bool {
	var held *redlock.HeldError
	return errors.As(err, &held) && held.Sequence == 0 && held.Holder.TTL != redlock.NoExpiry
}

// cameBeside notes a tick that came during a run that is no tick.
func (h *history) cameBeside(tick time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i, there := slices.BinarySearchFunc(h.beside, tick, time.Time.Compare)
	if there {
		return
	}
	h.beside = slices.Insert(h.beside, i, tick)
	h.beside = h.beside[max(0, len(h.beside)-MaxCatchUp):]
}

// isBeside reports whether that was noted.
func (h *history) isBeside(tick time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, there := slices.BinarySearchFunc(h.beside, tick, time.Time.Compare)
	return there
}
