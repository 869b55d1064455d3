package joblog_test

import (
	"flag"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/joblog"
)

// TestMain has more random checks made than rapid's 100, which would find little here: they are
// fast.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "3000"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// midnight is where the tests' times count from.
var midnight = time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)

// at reads a time after midnight, as "26h30m".
func at(text string) time.Time {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return midnight.Add(d)
}

// list is a table of single due times, ascending.
type list struct {
	from  time.Time
	times []time.Time
}

func (l list) From() time.Time { return l.from }

func (l list) Next(after time.Time) time.Time {
	i, _ := slices.BinarySearchFunc(l.times, after.Add(1), time.Time.Compare)
	if i == len(l.times) {
		return time.Time{}
	}
	return l.times[i]
}

// times is a definition of a job that names its times.
func times(of ...string) joblog.Definition {
	var l list
	for _, text := range of {
		l.times = append(l.times, at(text))
	}
	return joblog.Definition{Words: "at", Table: func(time.Time) joblog.Table { return l }}
}

// periodic is a table that has a due time in each period, and counts what it is asked.
type periodic struct {
	since, phase time.Time
	period       time.Duration
	asked        *int
}

func (p periodic) From() time.Time { return p.since }

func (p periodic) Next(after time.Time) time.Time {
	if p.asked != nil {
		*p.asked++
	}
	n := after.Sub(p.phase) / p.period
	if after.Before(p.phase) && after.Sub(p.phase)%p.period != 0 {
		n--
	}
	return p.phase.Add((n + 1) * p.period)
}

// every is a definition whose due times count from since.
func every(period time.Duration) joblog.Definition {
	return joblog.Definition{Words: "every " + period.String(), Table: func(since time.Time) joblog.Table {
		return periodic{since: since, phase: since, period: period}
	}}
}

// everyFrom is one that begins with a start, which is due itself.
func everyFrom(period time.Duration, start time.Time) joblog.Definition {
	return joblog.Definition{Words: "every " + period.String() + " from " + start.String(), Table: func(since time.Time) joblog.Table {
		from := since
		if start.Add(-1).After(from) {
			from = start.Add(-1)
		}
		return periodic{since: from, phase: start, period: period}
	}}
}

// atOnce is one that begins when it is made.
func atOnce(period time.Duration) joblog.Definition {
	return joblog.Definition{Words: "at once and every " + period.String(), Table: func(since time.Time) joblog.Table {
		return periodic{since: since.Add(-1), phase: since, period: period}
	}}
}

// daily is one that is due at a time of the day.
func daily(hour time.Duration) joblog.Definition {
	return joblog.Definition{Words: "daily at " + hour.String(), Table: func(since time.Time) joblog.Table {
		return periodic{since: since, phase: midnight.Add(hour), period: 24 * time.Hour}
	}}
}

// chained is a definition whose runs decide what is next.
func chained(pause time.Duration, fromEnd bool) joblog.Definition {
	return joblog.Definition{Words: "chain", Table: func(since time.Time) joblog.Table { return chain{since, pause, fromEnd} }}
}

type chain struct {
	since   time.Time
	pause   time.Duration
	fromEnd bool
}

func (c chain) From() time.Time                { return c.since }
func (c chain) Next(time.Time) time.Time       { return c.since.Add(c.pause) }
func (c chain) Follow(run time.Time) time.Time { return run.Add(c.pause) }
func (c chain) FromEnd() bool                  { return c.fromEnd }
