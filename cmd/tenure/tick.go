package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/ticks"
	"github.com/tenure-dev/tenure/internal/timetable"
)

// minKeep is the shortest time for which nodes remember a tick. A host may be late by that much and
// still find the tick taken.
const minKeep = 24 * time.Hour

// mostAhead is how far a tick may be ahead of this host's clock. This clock may be slow, and the
// nodes decide by their own clocks whether a tick is due.
const mostAhead = time.Minute

// farthest is how far back a schedule is searched for a tick that was due. Five years include a
// leap year.
const farthest = 5 * 366 * 24 * time.Hour

// tickOf returns the tick for the text of --tick at the time now. The text is a time, or a crontab
// schedule, which stands for its latest tick that is due. Hosts that share one run must compute the
// same tick.
func tickOf(text string, now time.Time) (ticks.Tick, error) {
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		if ahead := at.Sub(now); ahead > mostAhead {
			return ticks.Tick{}, fmt.Errorf("--tick=%s is %v from now, and no tick is granted before its time: is this host's clock right?", quoted(text), ahead.Round(time.Second))
		}
		return checked(at, minKeep)
	}
	if strings.HasPrefix(text, "@every") {
		return ticks.Tick{}, fmt.Errorf("--tick=%s: every host would begin to count at another time: use --once-per", quoted(text))
	}
	schedule, err := timetable.New(timetable.Spec{Kind: timetable.Crontab, Text: text, Zone: now.Location()})
	if bad, is := errors.AsType[*timetable.OptionError](err); is { // the error itself names a function of gocron
		err = errors.New(bad.Reason)
	}
	if err != nil {
		return ticks.Tick{}, fmt.Errorf("--tick=%s is neither a schedule as in a crontab, nor a time as 2006-01-02T15:04:05Z: %w", quoted(text), err)
	}
	due := schedule.Table(time.Time{}).Next
	at := joblog.Last(due, now.Add(-farthest), now)
	if at.IsZero() {
		return ticks.Tick{}, fmt.Errorf("--tick=%s: nothing was due in the last five years", quoted(text))
	}
	return checked(at, max(minKeep, 2*due(at).Sub(at)))
}

// tickOfPeriod returns the tick of --once-per: the beginning of the period that contains now.
// Periods are counted from 1970, in UTC.
func tickOfPeriod(period time.Duration, now time.Time) (ticks.Tick, error) {
	switch {
	case period < time.Second:
		return ticks.Tick{}, fmt.Errorf("--once-per %v: a second is the shortest period", period)
	case period%time.Millisecond != 0:
		return ticks.Tick{}, fmt.Errorf("--once-per %v: a period is a whole number of milliseconds", period)
	case period > 366*24*time.Hour:
		return ticks.Tick{}, fmt.Errorf("--once-per %v: 8784h is the longest period", period)
	}
	ms := now.UnixMilli()
	return checked(time.UnixMilli(ms-ms%period.Milliseconds()), max(minKeep, 2*period))
}

func checked(at time.Time, keep time.Duration) (ticks.Tick, error) {
	if at.UnixMilli() < 1 {
		return ticks.Tick{}, errors.New("a tick is a time after the beginning of 1970: is this host's clock right?")
	}
	return ticks.Tick{At: at, Keep: keep}, nil
}
