package scheduler

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// newProbe returns the ticker of a job, as NewJob makes it.
func newProbe(t require.TestingT, definition gocron.JobDefinition, location *time.Location, opts ...gocron.JobOption) *ticker {
	s, err := gocron.NewScheduler(gocron.WithLocation(location))
	require.NoError(t, err)
	defer func() { _ = s.Shutdown() }()
	j, err := s.NewJob(definition, gocron.NewTask(func() {}), opts...)
	require.NoError(t, err)
	return newTicker(j.Schedule(), definition, timeless(opts, time.Now()), location)
}

// calendar is an oracle: it looks at every day, and knows nothing of gocron.
type calendar struct {
	name       string
	definition gocron.JobDefinition
	due        func(day time.Time) bool
	hour       int
	minute     int
}

// ticks are those after from and not after to.
func (c *calendar) ticks(from, to time.Time) []time.Time {
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

func drawCalendar(t *rapid.T, from time.Time) *calendar {
	c := &calendar{hour: from.Hour(), minute: from.Minute()}
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

// Missed ticks are those that a calendar shows, whatever the kind of job, its interval, and the time that has passed.
func TestMissedTicksAgainstACalendar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := time.Date(2024, 1, rapid.IntRange(1, 28).Draw(t, "day"), rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute"), 0, 0, time.UTC)
		c := drawCalendar(t, from)
		to := from.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(5*365*24*time.Hour)).Draw(t, "later")))
		got, err := newProbe(t, c.definition, time.UTC).between(from, to)
		require.NoError(t, err)
		want := c.ticks(from, to)
		require.Len(t, got, len(want), c.name)
		for i := range want {
			require.True(t, want[i].Equal(got[i]), "%s: %v is not %v", c.name, got[i], want[i])
		}
	})
}

func TestMissedIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		every := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Hour)).Draw(t, "every"))
		from := time.UnixMilli(rapid.Int64Range(1, 4e12).Draw(t, "from")).UTC()
		to := from.Add(time.Duration(rapid.Int64Range(0, 1500).Draw(t, "intervals")) * every).Add(every / 3)
		got, err := newProbe(t, gocron.DurationJob(every), time.UTC).between(from, to)
		require.NoError(t, err)
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
	several := newProbe(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(slices.Clone(times)...)), time.Local)
	for i := range times {
		got, err := several.between(now.Add(time.Minute), times[i])
		require.NoError(t, err)
		require.Equal(t, times[:i+1], got)
		got, err = several.between(times[i], times[2].Add(time.Hour))
		require.NoError(t, err, "also when all is over")
		require.ElementsMatch(t, times[i+1:], got)
	}
	require.Equal(t, time.Hour, several.gap(now))

	random := newProbe(t, gocron.DurationRandomJob(time.Second, time.Minute), time.UTC)
	got, err := random.between(now, now.Add(time.Hour))
	require.NoError(t, err)
	require.Empty(t, got)

	secondly := newProbe(t, gocron.CronJob("* * * * * *", true), time.UTC)
	got, err = secondly.between(now, now.Add(3*time.Hour))
	require.NoError(t, err)
	require.Len(t, got, MaxCatchUp, "the last of them")
	require.True(t, got[MaxCatchUp-1].Equal(now.Add(3*time.Hour)))
	require.True(t, got[0].Equal(now.Add(3*time.Hour-(MaxCatchUp-1)*time.Second)))
	got, err = secondly.between(now, now)
	require.NoError(t, err)
	require.Empty(t, got)
}

// The night in which the clocks go forward has no 02:30, and the one in which they go back has it twice. What is to become of it is
// gocron's to say: its kinds of jobs differ.
func TestMissedTicksWhenTheClocksChange(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	halfPastTwo := gocron.NewAtTimes(gocron.NewAtTime(2, 30, 0))
	for _, tc := range []struct {
		name       string
		definition gocron.JobDefinition
		opts       []gocron.JobOption
		from, to   string
		want       []string
	}{
		{"cron, forward", gocron.CronJob("30 2 * * *", false), nil, "2024-03-30T02:30:00+01:00", "2024-04-01T12:00:00+02:00", []string{"2024-04-01T02:30:00+02:00"}},
		{"daily, forward", gocron.DailyJob(1, halfPastTwo), nil, "2024-03-30T02:30:00+01:00", "2024-04-01T12:00:00+02:00",
			[]string{"2024-03-31T03:30:00+02:00", "2024-04-01T02:30:00+02:00"}},
		{"daily, forward, skipped", gocron.DailyJob(1, halfPastTwo), []gocron.JobOption{gocron.WithDaylightSavingsTimePolicy(gocron.DaylightSavingsTimeSkip)},
			"2024-03-30T02:30:00+01:00", "2024-04-01T12:00:00+02:00", []string{"2024-04-01T02:30:00+02:00"}},
		{"daily, forward, after it", gocron.DailyJob(1, halfPastTwo),
			[]gocron.JobOption{gocron.WithDaylightSavingsTimePolicy(gocron.DaylightSavingsTimeRunAfterTransition)},
			"2024-03-30T02:30:00+01:00", "2024-04-01T12:00:00+02:00", []string{"2024-03-31T03:30:00+02:00", "2024-04-01T02:30:00+02:00"}},
		{"cron, back", gocron.CronJob("30 2 * * *", false), nil, "2024-10-26T02:30:00+02:00", "2024-10-28T12:00:00+01:00",
			[]string{"2024-10-27T02:30:00+02:00", "2024-10-28T02:30:00+01:00"}},
		{"daily, back", gocron.DailyJob(1, halfPastTwo), nil, "2024-10-26T02:30:00+02:00", "2024-10-28T12:00:00+01:00",
			[]string{"2024-10-27T02:30:00+01:00", "2024-10-28T02:30:00+01:00"}},
		{"hourly, back", gocron.CronJob("0 * * * *", false), nil, "2024-10-27T01:00:00+02:00", "2024-10-27T04:00:00+01:00",
			[]string{"2024-10-27T02:00:00+02:00", "2024-10-27T03:00:00+01:00", "2024-10-27T04:00:00+01:00"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			parse := func(text string) time.Time {
				at, err := time.Parse(time.RFC3339, text)
				require.NoError(t, err)
				return at.In(berlin)
			}
			got, err := newProbe(t, tc.definition, berlin, tc.opts...).between(parse(tc.from), parse(tc.to))
			require.NoError(t, err)
			var texts []string
			for _, tick := range got {
				texts = append(texts, tick.Format(time.RFC3339))
			}
			require.Equal(t, tc.want, texts)
		})
	}
}
