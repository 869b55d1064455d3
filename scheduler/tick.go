package scheduler

import (
	"slices"
	"time"

	"github.com/go-co-op/gocron/v2"
)

// A tick is known on all replicas by a number, its time in milliseconds since 1970. Jobs by
// crontab, and daily, weekly, monthly and one-time jobs tick at the same times everywhere: see
// timetable. A duration job counts from the start of its replica: there the number is that of the
// interval, counted from 1970, which the tick falls into, so that one run a time is had in each,
// whoever is first.

// ticker knows the ticks of a job.
type ticker struct {
	every  time.Duration // of duration jobs; else 0
	random bool          // the ticks of no two replicas have anything to do with each other
	table  timetable     // of the others

	start, end time.Time // the job has no ticks before the one and from the other on; zero for none
}

func newTicker(schedule gocron.JobSchedule, table timetable, start, end time.Time) *ticker {
	t := &ticker{table: table, start: start, end: end}
	switch s := schedule.(type) {
	case gocron.DurationJobSchedule:
		t.every = s.Duration
	case gocron.DurationRandomJobSchedule:
		t.random = true
	}
	return t
}

// of returns the tick by which all replicas know the one that is scheduled for a time.
func (t *ticker) of(scheduled time.Time) time.Time {
	if t.every > 0 {
		return bucket(scheduled, t.every)
	}
	return scheduled
}

// within returns the time that is scheduled in the interval of a tick: counted from the job's
// start, and the tick itself if there is none. Other ticks are that themselves.
func (t *ticker) within(tick time.Time) time.Time {
	if t.every == 0 || t.start.IsZero() {
		return tick
	}
	return tick.Add(t.start.Sub(bucket(t.start, t.every))).In(tick.Location())
}

// bucket rounds down to a multiple of every since 1970.
func bucket(at time.Time, every time.Duration) time.Time {
	ns := at.UnixNano()
	return time.Unix(0, ns-ns%int64(every)).In(at.Location())
}

// isOver reports whether a time is after the job's last tick.
func (t *ticker) isOver(scheduled time.Time) bool {
	return !t.end.IsZero() && !scheduled.Before(t.end)
}

// between returns the ticks after from, which is a tick itself, and not after to, the last
// MaxCatchUp of them. Those of a duration job are the beginnings of intervals. Of random jobs
// it is not known what was missed.
func (t *ticker) between(from, to time.Time) []time.Time {
	if t.isOver(to) {
		to = t.end.Add(-1)
	}
	return slices.DeleteFunc(t.all(from, to), func(at time.Time) bool { return !t.has(at) })
}

// has reports whether a tick is between the job's start and end.
func (t *ticker) has(tick time.Time) bool {
	return (t.start.IsZero() || !tick.Before(t.of(t.start))) && !t.isOver(tick)
}

// all is between without the job's start and end.
func (t *ticker) all(from, to time.Time) []time.Time {
	if t.random || !from.Before(to) {
		return nil
	}
	var ticks []time.Time
	if t.every > 0 {
		last := bucket(to, t.every)
		first := bucket(from, t.every).Add(t.every)
		if last.Sub(first)/t.every >= MaxCatchUp {
			first = last.Add(-(MaxCatchUp - 1) * t.every)
		}
		for tick := first; !tick.After(last); tick = tick.Add(t.every) {
			ticks = append(ticks, tick)
		}
		return ticks
	}
	for tick := t.table.next(from); !tick.After(to); tick = t.table.next(tick) {
		if ticks = append(ticks, tick); len(ticks) == 2*MaxCatchUp {
			ticks = slices.Delete(ticks, 0, MaxCatchUp)
		}
	}
	return ticks[max(0, len(ticks)-MaxCatchUp):]
}

// gap returns the time from a tick to the next one.
func (t *ticker) gap(tick time.Time) time.Duration {
	switch {
	case t.every > 0:
		return t.every
	case t.random:
		return 0
	}
	if next := t.table.next(tick); next.Before(never) {
		return next.Sub(tick)
	}
	return 0
}
