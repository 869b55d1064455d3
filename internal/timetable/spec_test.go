package timetable_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/timetable"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func zone(t require.TestingT, name string) *time.Location {
	location, err := time.LoadLocation(name)
	require.NoError(t, err)
	return location
}

func date(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

func atTimes(of ...string) (times []time.Duration) {
	for _, text := range of {
		d, err := time.ParseDuration(text)
		if err != nil {
			panic(err)
		}
		times = append(times, d)
	}
	return times
}

func cron(text string) timetable.Spec {
	return timetable.Spec{Kind: timetable.Crontab, Text: text, Seconds: true}
}

func days(units uint, times []time.Duration) timetable.Spec {
	return timetable.Spec{Kind: timetable.Daily, Units: units, Times: times}
}

func weeks(units uint, on []time.Weekday, times []time.Duration) timetable.Spec {
	return timetable.Spec{Kind: timetable.Weekly, Units: units, Weekdays: on, Times: times}
}

func months(units uint, on []int, times []time.Duration) timetable.Spec {
	return timetable.Spec{Kind: timetable.Monthly, Units: units, Days: on, Times: times}
}

func interval(every time.Duration) timetable.Spec {
	return timetable.Spec{Kind: timetable.Interval, Every: every}
}

func random(least, most time.Duration) timetable.Spec {
	return timetable.Spec{Kind: timetable.Random, Every: least, Most: most}
}

func once(at ...time.Time) timetable.Spec { return timetable.Spec{Kind: timetable.Once, At: at} }

func words(t require.TestingT, spec timetable.Spec) string {
	table, err := timetable.New(spec)
	require.NoError(t, err)
	return table.Words
}

// made returns the due times of a definition that was made at a time.
func made(t require.TestingT, spec timetable.Spec, since time.Time) joblog.Table {
	table, err := timetable.New(spec)
	require.NoError(t, err)
	return table.Table(since)
}

// between are the due times after one time and not after another.
func between(table joblog.Table, from, to time.Time) (times []time.Time) {
	for at := table.Next(from); !at.IsZero() && !at.After(to); at = table.Next(at) {
		times = append(times, at)
	}
	return times
}

// nextRuns are the first n due times after a time.
func nextRuns(table joblog.Table, after time.Time, n int) (times []time.Time) {
	for at := table.Next(after); len(times) < n && !at.IsZero(); at = table.Next(at) {
		times = append(times, at)
	}
	return times
}

func requireTimes(t require.TestingT, want, got []time.Time, msg ...any) {
	require.Len(t, got, len(want), "%v: want %v, got %v", msg, want, got)
	for i := range want {
		require.True(t, want[i].Equal(got[i]), "%v: %v is not %v", msg, got[i], want[i])
	}
}
