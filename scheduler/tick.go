package scheduler

import (
	"errors"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
)

// A tick is known on all replicas by a number, its time in milliseconds since 1970. Jobs by crontab, and daily, weekly, monthly
// and one-time jobs tick at the same times everywhere. A duration job counts from the start of its replica: there the number is that
// of the interval, counted from 1970, which the tick falls into, so that one run a time is had in each, whoever is first.

// ticker knows the ticks of a job.
type ticker struct {
	every      time.Duration // of duration jobs; else 0
	random     bool          // the ticks of no two replicas have anything to do with each other
	definition gocron.JobDefinition
	options    []gocron.JobOption
	location   *time.Location
}

func newTicker(schedule gocron.JobSchedule, definition gocron.JobDefinition, options []gocron.JobOption, location *time.Location) *ticker {
	t := &ticker{definition: definition, options: options, location: location}
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

// bucket rounds down to a multiple of every since 1970.
func bucket(at time.Time, every time.Duration) time.Time {
	ns := at.UnixNano()
	return time.Unix(0, ns-ns%int64(every)).In(at.Location())
}

// between returns the ticks after from, which is a tick itself, and not after to, the last MaxCatchUp of them. Those of a
// duration job are the beginnings of intervals. Of random jobs nobody knows what was missed.
func (t *ticker) between(from, to time.Time) ([]time.Time, error) {
	if t.random || !from.Before(to) {
		return nil, nil
	}
	var ticks []time.Time
	if t.every > 0 {
		last := bucket(to, t.every)
		first := bucket(from, t.every).Add(t.every)
		if earliest := last.Add(-(MaxCatchUp - 1) * t.every); first.Before(earliest) {
			first = earliest
		}
		for tick := first; !tick.After(last); tick = tick.Add(t.every) {
			ticks = append(ticks, tick)
		}
		return ticks, nil
	}
	for n := 16; len(ticks) == 0 || !ticks[len(ticks)-1].After(to); n = min(4*n, 2*MaxCatchUp) {
		// Most of the time few have been missed. More than MaxCatchUp at a time, so that the last of many are reached in few steps.
		more, err := t.following(from, n)
		if err != nil || len(more) == 0 {
			return upTo(ticks, to), err
		}
		ticks = append(upTo(ticks, to), more...)
		from = more[len(more)-1]
	}
	return upTo(ticks, to), nil
}

// upTo returns the last MaxCatchUp ticks that are not after to.
func upTo(ticks []time.Time, to time.Time) []time.Time {
	for len(ticks) > 0 && ticks[len(ticks)-1].After(to) {
		ticks = ticks[:len(ticks)-1]
	}
	return ticks[max(0, len(ticks)-MaxCatchUp):]
}

// following returns up to n ticks after a time. gocron computes them, in a scheduler of their own whose clock stands still.
func (t *ticker) following(after time.Time, n int) ([]time.Time, error) {
	s, err := gocron.NewScheduler(gocron.WithClock(clockwork.NewFakeClockAt(after)), gocron.WithLocation(t.location))
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Shutdown() }()
	j, err := s.NewJob(t.definition, gocron.NewTask(func() {}), t.options...)
	if errors.Is(err, gocron.ErrOneTimeJobStartDateTimePast) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	s.Start()
	runs, err := j.NextRuns(n)
	if err != nil {
		return nil, err
	}
	var ticks []time.Time
	for _, tick := range runs {
		if !tick.After(after) {
			break // there are no more: gocron goes on with a zero time, and then from the beginning
		}
		ticks = append(ticks, tick)
		after = tick
	}
	return ticks, nil
}

// gap returns the longest time between two of the next ticks, for how long the last must be remembered.
func (t *ticker) gap(now time.Time) time.Duration {
	if t.every > 0 {
		return t.every
	}
	var longest time.Duration
	ticks, _ := t.following(now, 512)
	for i := 1; i < len(ticks); i++ {
		longest = max(longest, ticks[i].Sub(ticks[i-1]))
	}
	return longest
}
