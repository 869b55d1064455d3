package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// newTestTicker returns the ticker of a job, as NewJob makes it.
func newTestTicker(t require.TestingT, definition gocron.JobDefinition, location *time.Location, opts ...gocron.JobOption) *ticker {
	ticks, _, _ := probed(t, time.Now(), definition, location, opts...)
	return ticks
}

// probed returns the ticker of a job that is made at some time, and what gocron is asked for.
func probed(t require.TestingT, now time.Time, definition gocron.JobDefinition, location *time.Location, opts ...gocron.JobOption) (*ticker, gocron.JobDefinition, []gocron.JobOption) {
	cfg, err := newConfig(nil, []Option{WithLocation(location), WithClock(clockwork.NewFakeClockAt(now))})
	require.NoError(t, err)
	inner, err := gocron.NewScheduler()
	require.NoError(t, err)
	defer func() { _ = inner.Shutdown() }()
	s := &Scheduler{Scheduler: inner, state: &state{cfg: cfg, inner: inner, leader: &leadership{}}}
	j, definition, opts, err := newJob(s, uuid.Nil, definition, NewTask(func() {}), append(opts, gocron.WithName("job")))
	require.NoError(t, err)
	return j.ticks, definition, opts
}

// oracle is a calendar that looks at every day, and knows nothing of gocron.
type oracle struct {
	name       string
	definition gocron.JobDefinition
	due        func(day time.Time) bool
	hour       int
	minute     int
}

// ticks are those after from and not after to.
func (c *oracle) ticks(from, to time.Time) []time.Time {
	var ticks []time.Time
	for day := from.AddDate(0, 0, -1); !day.After(to.AddDate(0, 0, 1)); day = day.AddDate(0, 0, 1) {
		at := time.Date(day.Year(), day.Month(), day.Day(), c.hour, c.minute, 0, 0, from.Location())
		if c.due(at) && at.After(from) && !at.After(to) {
			ticks = append(ticks, at)
		}
	}
	return ticks[max(0, len(ticks)-MaxCatchUp):]
}

func days(from, to time.Time) int { return int(to.Sub(from).Round(24*time.Hour) / (24 * time.Hour)) }

func drawOracle(t *rapid.T, from time.Time) *oracle {
	c := &oracle{hour: from.Hour(), minute: from.Minute()}
	at := gocron.NewAtTimes(gocron.NewAtTime(uint(c.hour), uint(c.minute), 0))
	switch c.name = rapid.SampledFrom([]string{"cron", "daily", "weekly", "monthly"}).Draw(t, "kind"); c.name {
	case "cron":
		c.definition = gocron.CronJob(fmt.Sprintf("%d %d * * 1-5", c.minute, c.hour), false)
		c.due = func(day time.Time) bool { return day.Weekday() >= time.Monday && day.Weekday() <= time.Friday }
	case "daily":
		every := rapid.IntRange(1, 4).Draw(t, "every")
		c.definition = gocron.DailyJob(uint(every), at)
		c.due = func(day time.Time) bool { return days(from, day)%every == 0 }
	case "weekly":
		every := rapid.IntRange(1, 3).Draw(t, "every")
		c.definition = gocron.WeeklyJob(uint(every), gocron.NewWeekdays(from.Weekday()), at)
		c.due = func(day time.Time) bool { return days(from, day)%(7*every) == 0 }
	case "monthly":
		every := rapid.IntRange(1, 3).Draw(t, "every")
		c.definition = gocron.MonthlyJob(uint(every), gocron.NewDaysOfTheMonth(from.Day()), at)
		c.due = func(day time.Time) bool {
			return day.Day() == from.Day() && (12*(day.Year()-from.Year())+int(day.Month()-from.Month()))%every == 0
		}
	}
	return c
}

// Missed ticks are those that a calendar shows, whatever the kind of job, its interval, and the
// time that has passed.
func TestMissedTicksAgainstACalendar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := time.Date(2024, 1, rapid.IntRange(1, 28).Draw(t, "day"), rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute"), 0, 0, time.UTC)
		c := drawOracle(t, from)
		to := from.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(5*365*24*time.Hour)).Draw(t, "later")))
		got := newTestTicker(t, c.definition, time.UTC, gocron.WithStartAt(gocron.WithStartDateTimePast(from))).between(from, to)
		want := c.ticks(from, to)
		require.Len(t, got, len(want), c.name)
		for i := range want {
			require.True(t, want[i].Equal(got[i]), "%s: %v is not %v", c.name, got[i], want[i])
		}
	})
}

func TestMissedIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		every := time.Duration(rapid.OneOf(rapid.Int64Range(int64(MinInterval), int64(MaxSpan)), rapid.Just(int64(MaxSpan))).Draw(t, "every"))
		from := time.UnixMilli(rapid.Int64Range(1, 4e12).Draw(t, "from")).UTC()
		most := min(1500, int64(time.Date(2250, 1, 1, 0, 0, 0, 0, time.UTC).Sub(from)/every)) // time.UnixNano ends in 2262
		to := from.Add(time.Duration(rapid.Int64Range(0, most).Draw(t, "intervals")) * every).Add(every / 3)
		got := newTestTicker(t, gocron.DurationJob(every), time.UTC).between(from, to)
		var want []time.Time
		for at := from.UnixNano() / int64(every) * int64(every); at+int64(every) <= to.UnixNano(); {
			at += int64(every)
			want = append(want, time.Unix(0, at).UTC())
		}
		want = want[max(0, len(want)-MaxCatchUp):]
		require.Len(t, got, len(want))
		for i := range want {
			require.True(t, want[i].Equal(got[i]))
		}
	})
}

func TestMissedTicksOfOtherJobs(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	times := []time.Time{now.Add(time.Hour), now.Add(2 * time.Hour), now.Add(3 * time.Hour)}
	several := newTestTicker(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(slices.Clone(times)...)), time.Local)
	for i := range times {
		got := several.between(now.Add(time.Minute), times[i])
		require.Equal(t, times[:i+1], got)
		got = several.between(times[i], times[2].Add(time.Hour))
		require.ElementsMatch(t, times[i+1:], got)
	}
	require.Equal(t, time.Hour, several.gap(times[0]))
	require.Zero(t, several.gap(times[2]))

	random := newTestTicker(t, gocron.DurationRandomJob(time.Second, time.Minute), time.UTC)
	got := random.between(now, now.Add(time.Hour))
	require.Empty(t, got)

	secondly := newTestTicker(t, gocron.CronJob("* * * * * *", true), time.UTC)
	got = secondly.between(now, now.Add(3*time.Hour))
	require.Len(t, got, MaxCatchUp, "the last of them")
	require.True(t, got[MaxCatchUp-1].Equal(now.Add(3*time.Hour)))
	require.True(t, got[0].Equal(now.Add(3*time.Hour-(MaxCatchUp-1)*time.Second)))
	got = secondly.between(now, now)
	require.Empty(t, got)
}
