package scheduler

import (
	"slices"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func zone(t require.TestingT, name string) *time.Location {
	location, err := time.LoadLocation(name)
	require.NoError(t, err)
	return location
}

func atTimes(times ...[2]uint) gocron.AtTimes {
	var at []gocron.AtTime
	for _, hm := range times {
		at = append(at, gocron.NewAtTime(hm[0], hm[1], 0))
	}
	return gocron.NewAtTimes(at[0], at[1:]...)
}

func onDaylightSaving(policy gocron.DaylightSavingsTimePolicy) []gocron.JobOption {
	return []gocron.JobOption{gocron.WithDaylightSavingsTimePolicy(policy)}
}

// A time that the clock skips is left out by crontabs and later by what is skipped for other jobs,
// or what the policy says. One that it shows twice is due the first time, but for crontabs of every
// hour.
func TestTimesWhenTheClocksChange(t *testing.T) {
	skip, later := onDaylightSaving(gocron.DaylightSavingsTimeSkip), onDaylightSaving(gocron.DaylightSavingsTimeRunAfterTransition)
	halfPastTwo := atTimes([2]uint{2, 30})
	sundays, last := gocron.NewWeekdays(time.Sunday), gocron.NewDaysOfTheMonth(-1, 8)
	for _, tc := range []struct {
		name       string
		zone       string
		definition gocron.JobDefinition
		opts       []gocron.JobOption
		from, to   string // both are local times
		want       []string
	}{
		// Clocks are set forward: Berlin from 2 to 3, New York from 2 to 3, Lord Howe from 2 to
		// 2:30, Havana from 0 to 1.
		{"cron, forward", "Europe/Berlin", gocron.CronJob("30 2 * * *", false), nil, "2026-03-28 12:00", "2026-03-30 12:00", []string{"30 02:30 +02"}},
		{"cron, forward, skipped", "Europe/Berlin", gocron.CronJob("30 2 * * *", false), skip, "2026-03-28 12:00", "2026-03-30 12:00", []string{"30 02:30 +02"}},
		{"cron, forward, later", "Europe/Berlin", gocron.CronJob("30 2 * * *", false), later, "2026-03-28 12:00", "2026-03-30 12:00",
			[]string{"29 03:30 +02", "30 02:30 +02"}},
		{"cron of a Monday, forward, later", "Europe/Berlin", gocron.CronJob("30 2 * * 1", false), later, "2026-03-28 12:00", "2026-03-30 12:00", []string{"30 02:30 +02"}},
		{"every half hour, forward", "Europe/Berlin", gocron.CronJob("*/30 * * * *", false), nil, "2026-03-29 01:00", "2026-03-29 04:00",
			[]string{"29 01:30 +01", "29 03:00 +02", "29 03:30 +02", "29 04:00 +02"}},
		{"every half hour, forward, later", "Europe/Berlin", gocron.CronJob("*/30 * * * *", false), later, "2026-03-29 01:00", "2026-03-29 04:00",
			[]string{"29 01:30 +01", "29 03:00 +02", "29 03:30 +02", "29 04:00 +02"}},
		{"daily, forward", "Europe/Berlin", gocron.DailyJob(1, halfPastTwo), nil, "2026-03-28 12:00", "2026-03-30 12:00", []string{"29 03:30 +02", "30 02:30 +02"}},
		{"daily, forward, west", "America/New_York", gocron.DailyJob(1, halfPastTwo), nil, "2026-03-07 12:00", "2026-03-09 12:00", []string{"8 03:30 -04", "9 02:30 -04"}},
		{"daily, forward, skipped", "Europe/Berlin", gocron.DailyJob(1, halfPastTwo), skip, "2026-03-28 12:00", "2026-03-30 12:00", []string{"30 02:30 +02"}},
		{"daily, forward, later", "Europe/Berlin", gocron.DailyJob(1, halfPastTwo), later, "2026-03-28 12:00", "2026-03-30 12:00", []string{"29 03:30 +02", "30 02:30 +02"}},
		{"several a day, forward", "Europe/Berlin", gocron.DailyJob(1, atTimes([2]uint{2, 30}, [2]uint{3, 0}, [2]uint{3, 30})), nil, "2026-03-29 00:00", "2026-03-29 12:00",
			[]string{"29 03:00 +02", "29 03:30 +02"}},
		{"weekly, forward", "Europe/Berlin", gocron.WeeklyJob(1, sundays, halfPastTwo), nil, "2026-03-25 12:00", "2026-04-06 12:00", []string{"29 03:30 +02", "5 02:30 +02"}},
		{"monthly, forward, west", "America/New_York", gocron.MonthlyJob(1, last, halfPastTwo), nil, "2026-02-10 00:00", "2026-04-09 12:00",
			[]string{"28 02:30 -05", "8 03:30 -04", "31 02:30 -04", "8 02:30 -04"}},
		{"daily, half an hour forward", "Australia/Lord_Howe", gocron.DailyJob(1, atTimes([2]uint{2, 15})), nil, "2026-10-03 12:00", "2026-10-05 12:00", []string{"4 02:45 +11", "5 02:15 +11"}},
		// gocron's own daily job is not due any more after this day.
		{"daily, forward at midnight", "America/Havana", gocron.DailyJob(1, atTimes([2]uint{0, 30}, [2]uint{10, 0})), nil, "2026-03-07 12:00", "2026-03-09 12:00",
			[]string{"8 01:30 -04", "8 10:00 -04", "9 00:30 -04", "9 10:00 -04"}},
		{"late in the evening, forward at midnight", "America/Havana", gocron.DailyJob(1, atTimes([2]uint{23, 30})), nil, "2026-03-07 12:00", "2026-03-09 12:00",
			[]string{"7 23:30 -05", "8 23:30 -04"}},
		// Clocks are set back: Berlin from 3 to 2, New York from 2 to 1, Lord Howe from 2 to 1:30,
		// Casablanca from 3 to 2, London from 2 to 1.
		{"cron, back", "Europe/Berlin", gocron.CronJob("30 2 * * *", false), nil, "2026-10-24 12:00", "2026-10-26 12:00", []string{"25 02:30 +02", "26 02:30 +01"}},
		{"cron, back, seconds", "Europe/Berlin", gocron.CronJob("0 30 2 * * *", true), nil, "2026-10-24 12:00", "2026-10-26 12:00", []string{"25 02:30 +02", "26 02:30 +01"}},
		{"cron of a list of hours, back", "Europe/Berlin", gocron.CronJob("0 1-3 * * *", false), nil, "2026-10-25 00:00", "2026-10-25 12:00",
			[]string{"25 01:00 +02", "25 02:00 +02", "25 03:00 +01"}},
		{"cron, back, zone of its own", "America/New_York", gocron.CronJob("CRON_TZ=Europe/Berlin 30 2 * * *", false), nil, "2026-10-24 12:00", "2026-10-26 12:00",
			[]string{"24 20:30 -04", "25 21:30 -04"}},
		{"every half hour, back", "Europe/Berlin", gocron.CronJob("*/30 * * * *", false), nil, "2026-10-25 01:30", "2026-10-25 03:30",
			[]string{"25 02:00 +02", "25 02:30 +02", "25 02:00 +01", "25 02:30 +01", "25 03:00 +01", "25 03:30 +01"}},
		{"@hourly, back", "Europe/London", gocron.CronJob("@hourly", false), nil, "2026-10-25 00:00", "2026-10-25 03:00",
			[]string{"25 01:00 +01", "25 01:00 +00", "25 02:00 +00", "25 03:00 +00"}},
		{"hourly, back, zone of its own", "America/New_York", gocron.CronJob("TZ=Europe/Berlin 0 * * * *", false), nil, "2026-10-24 19:30", "2026-10-24 22:30",
			[]string{"24 20:00 -04", "24 21:00 -04", "24 22:00 -04"}},
		{"@daily, back", "Europe/Berlin", gocron.CronJob("@daily", false), nil, "2026-10-24 12:00", "2026-10-26 12:00", []string{"25 00:00 +02", "26 00:00 +01"}},
		{"daily, back", "Europe/Berlin", gocron.DailyJob(1, halfPastTwo), nil, "2026-10-24 12:00", "2026-10-26 12:00", []string{"25 02:30 +02", "26 02:30 +01"}},
		{"daily, back, west", "America/New_York", gocron.DailyJob(1, atTimes([2]uint{1, 30})), nil, "2026-10-31 12:00", "2026-11-02 12:00", []string{"1 01:30 -04", "2 01:30 -05"}},
		{"weekly, back", "America/New_York", gocron.WeeklyJob(1, sundays, atTimes([2]uint{1, 30})), nil, "2026-10-31 12:00", "2026-11-09 12:00", []string{"1 01:30 -04", "8 01:30 -05"}},
		{"cron, half an hour back", "Australia/Lord_Howe", gocron.CronJob("45 1 * * *", false), nil, "2026-04-04 12:00", "2026-04-06 12:00", []string{"5 01:45 +11", "6 01:45 +1030"}},
		{"every quarter, half an hour back", "Australia/Lord_Howe", gocron.CronJob("*/15 * * * *", false), nil, "2026-04-05 01:15", "2026-04-05 02:00",
			[]string{"5 01:30 +11", "5 01:45 +11", "5 01:30 +1030", "5 01:45 +1030", "5 02:00 +1030"}},
		{"cron, back for Ramadan", "Africa/Casablanca", gocron.CronJob("30 2 * * *", false), nil, "2026-02-14 12:00", "2026-02-16 12:00", []string{"15 02:30 +01", "16 02:30 +00"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			location := zone(t, tc.zone)
			parse := func(text string) time.Time {
				at, err := time.ParseInLocation("2006-01-02 15:04", text, location)
				require.NoError(t, err)
				return at
			}
			got := newTestTicker(t, tc.definition, location, tc.opts...).between(parse(tc.from), parse(tc.to))
			var texts []string
			for _, tick := range got {
				texts = append(texts, tick.In(location).Format("2 15:04 -0700"))
			}
			want := slices.Clone(tc.want)
			for i := range want {
				if n := len(want[i]); want[i][n-3] == '-' || want[i][n-3] == '+' {
					want[i] += "00"
				}
			}
			require.Equal(t, want, texts)
		})
	}
}

// scheduledFrom returns the times that gocron has for a job on a replica that starts at some time,
// up to another.
func scheduledFrom(t require.TestingT, start, end time.Time, location *time.Location, definition gocron.JobDefinition, opts ...gocron.JobOption) []time.Time {
	_, definition, opts = probed(t, start, definition, location, opts...)
	s, err := gocron.NewScheduler(gocron.WithClock(clockwork.NewFakeClockAt(start)), gocron.WithLocation(location))
	require.NoError(t, err)
	defer func() { _ = s.Shutdown() }()
	j, err := s.NewJob(definition, gocron.NewTask(func() {}), opts...)
	require.NoError(t, err)
	s.Start()
	for n := 16; ; n *= 2 {
		runs, err := j.NextRuns(n)
		require.NoError(t, err)
		if len(runs) < n || runs[n-1].After(end) {
			i, _ := slices.BinarySearchFunc(runs, end.Add(1), time.Time.Compare)
			return runs[:i]
		}
	}
}

func date(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

func requireTimes(t require.TestingT, want, got []time.Time, msg ...any) {
	require.Len(t, got, len(want), "%v: want %v, got %v", msg, want, got)
	for i := range want {
		require.True(t, want[i].Equal(got[i]), "%v: %v is not %v", msg, got[i], want[i])
	}
}

// Every minute of two years: the times are those of the minutes at which the clock shows what the
// schedule says, seen one after the other.
func TestTimesAgainstAClockThatIsWatched(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/Havana"} {
		t.Run(name, func(t *testing.T) {
			location := zone(t, name)
			fixed := newTestTicker(t, gocron.CronJob("30 0-3 * * *", false), location)
			every := newTestTicker(t, gocron.CronJob("30 * * * *", false), location)
			begin, end := date(2026, 1, 1), date(2027, 1, 1)
			var wantFixed, wantEvery []time.Time
			seen := make(map[string]bool)
			for at := begin.Add(time.Minute); !at.After(end); at = at.Add(time.Minute) {
				shown := at.In(location)
				if shown.Minute() != 30 {
					continue
				}
				wantEvery = append(wantEvery, at)
				if text := shown.Format(time.DateTime); shown.Hour() <= 3 && !seen[text] {
					seen[text] = true
					wantFixed = append(wantFixed, at)
				}
			}
			for at := begin; at.Before(end); at = at.AddDate(0, 0, 30) {
				until := at.AddDate(0, 0, 30)
				for _, tc := range []struct {
					ticks *ticker
					want  []time.Time
				}{{fixed, wantFixed}, {every, wantEvery}} {
					from, _ := slices.BinarySearchFunc(tc.want, at.Add(1), time.Time.Compare)
					to, _ := slices.BinarySearchFunc(tc.want, until.Add(1), time.Time.Compare)
					got := tc.ticks.between(at, min2(until, end))
					requireTimes(t, tc.want[from:to], got)
				}
			}
		})
	}
}

func min2(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// drawInterval draws a job of every so many days, weeks or months, counted from a time that is
// given.
func drawInterval(t *rapid.T, day time.Time) (gocron.JobDefinition, gocron.JobOption) {
	every := uint(rapid.IntRange(1, 3).Draw(t, "every"))
	hour, minute := uint(rapid.IntRange(0, 22).Draw(t, "hour")), uint(rapid.SampledFrom([]int{0, 30}).Draw(t, "minute"))
	at := atTimes([2]uint{hour, minute}, [2]uint{hour + 1, 15})
	anchor := day.AddDate(0, -3, -rapid.IntRange(0, 40).Draw(t, "anchor"))
	since := gocron.WithStartAt(gocron.WithStartDateTimePast(anchor))
	switch rapid.SampledFrom([]string{"days", "weeks", "months"}).Draw(t, "kind") {
	case "days":
		return gocron.DailyJob(every, at), since
	case "weeks":
		return gocron.WeeklyJob(every, gocron.NewWeekdays(time.Weekday(rapid.IntRange(0, 6).Draw(t, "weekday")), time.Wednesday), at), since
	default:
		return gocron.MonthlyJob(every, gocron.NewDaysOfTheMonth(rapid.IntRange(1, 31).Draw(t, "date"), -1, -rapid.IntRange(1, 31).Draw(t, "from the end")), at), since
	}
}

// Replicas agree on the days, weeks and months that an interval leaves out, also when clocks are
// changed.
func TestReplicasAgreeOnIntervals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		location := zone(t, rapid.SampledFrom([]string{"Europe/Berlin", "America/New_York", "America/Havana", "Australia/Lord_Howe"}).Draw(t, "zone"))
		day := rapid.SampledFrom([]time.Time{
			date(2026, 3, 29), date(2026, 3, 8), date(2026, 10, 25), date(2026, 11, 1), date(2026, 4, 5), date(2026, 10, 4),
		}).Draw(t, "day")
		definition, since := drawInterval(t, day)
		begin, end := day.AddDate(0, -1, 0), day.AddDate(0, 3, 0)
		all := scheduledFrom(t, begin, end, location, definition, since)
		start := begin.Add(time.Duration(rapid.IntRange(0, 60*24*60).Draw(t, "start")) * time.Minute).Add(time.Millisecond)
		from, _ := slices.BinarySearchFunc(all, start, time.Time.Compare)
		requireTimes(t, all[from:], scheduledFrom(t, start, end, location, definition, since), "started at %v", start)
		if len(all) > 0 {
			requireTimes(t, all[1:], newTestTicker(t, definition, location, since).between(all[0], end), "missed")
		}
	})
}

// Where clocks are not changed the times are gocron's own.
func TestTimesAreThoseOfGocron(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		day := date(2026, 1, 1).AddDate(0, 0, rapid.IntRange(0, 4*365).Draw(t, "day"))
		definition, since := drawInterval(t, day)
		// A job that is due in the moment of its start runs at once, beside the question for its
		// next runs.
		start := day.Add(time.Duration(rapid.IntRange(0, 24*60).Draw(t, "start"))*time.Minute + time.Millisecond)
		s, err := gocron.NewScheduler(gocron.WithClock(clockwork.NewFakeClockAt(start)), gocron.WithLocation(time.UTC))
		require.NoError(t, err)
		defer func() { _ = s.Shutdown() }()
		j, err := s.NewJob(definition, gocron.NewTask(func() {}), since)
		require.NoError(t, err)
		s.Start()
		want, err := j.NextRuns(20)
		require.NoError(t, err)
		requireTimes(t, want, scheduledFrom(t, start, want[len(want)-1], time.UTC, definition, since))
	})
}
