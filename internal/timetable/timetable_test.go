package timetable_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/timetable"
)

var noon = date(2026, 3, 2).Add(12 * time.Hour)

// after returns noon and some minutes.
func after(minutes ...int) (times []time.Time) {
	for _, n := range minutes {
		times = append(times, noon.Add(time.Duration(n)*time.Minute))
	}
	return times
}

// The due times of the first hours of a definition that is made at noon, and whether noon is owed.
func TestTimesOfADefinition(t *testing.T) {
	for name, tc := range map[string]struct {
		spec timetable.Spec
		want []time.Time
		from time.Time
	}{
		"interval":                     {interval(20 * time.Minute), after(20, 40, 60), noon},
		"interval at once":             {timetable.Spec{Kind: timetable.Interval, Every: 20 * time.Minute, AtOnce: true}, after(0, 20, 40), noon.Add(-1)},
		"interval from a start soon":   {timetable.Spec{Kind: timetable.Interval, Every: 20 * time.Minute, Start: after(5)[0]}, after(5, 25, 45), noon},
		"interval from a past start":   {timetable.Spec{Kind: timetable.Interval, Every: 20 * time.Minute, Start: after(-25)[0]}, after(15, 35, 55), noon},
		"interval from just now":       {timetable.Spec{Kind: timetable.Interval, Every: 20 * time.Minute, Start: noon}, after(0, 20, 40), noon.Add(-1)},
		"interval to an end":           {timetable.Spec{Kind: timetable.Interval, Every: 20 * time.Minute, Stop: after(60)[0]}, after(20, 40), noon},
		"crontab":                      {cron("*/30 * * * *"), after(30, 60, 90), noon},
		"crontab at once":              {timetable.Spec{Kind: timetable.Crontab, Text: "*/30 * * * *", AtOnce: true}, after(0, 30, 60), noon.Add(-1)},
		"crontab from a start":         {timetable.Spec{Kind: timetable.Crontab, Text: "*/30 * * * *", Start: after(40)[0]}, after(40, 60, 90), noon},
		"crontab to an end":            {timetable.Spec{Kind: timetable.Crontab, Text: "*/30 * * * *", Stop: after(31)[0]}, after(30), noon},
		"daily":                        {days(1, atTimes("12h10m", "13h")), after(10, 60, 24*60+10), noon},
		"every second day":             {days(2, atTimes("12h10m", "13h")), after(10, 60, 2*24*60+10), noon},
		"one-time, in any order":       {once(after(10, -70, 10, 5)...), after(-70, 5, 10), time.Time{}},
		"one-time at once":             {timetable.Spec{Kind: timetable.Once, AtOnce: true}, after(0), noon.Add(-1)},
		"the user's own":               {timetable.Spec{Kind: timetable.Own, Next: func(at time.Time) time.Time { return at.Truncate(time.Hour).Add(time.Hour) }}, after(60, 120, 180), noon},
		"the user's own, with a start": {timetable.Spec{Kind: timetable.Own, Next: func(at time.Time) time.Time { return at.Truncate(time.Hour).Add(time.Hour) }, Start: after(90)[0]}, after(90, 120, 180), noon},
	} {
		t.Run(name, func(t *testing.T) {
			table := made(t, tc.spec, noon.In(zone(t, "Europe/Berlin")))
			_, isChain := table.(joblog.Chain)
			require.False(t, isChain)
			require.True(t, tc.from.Equal(table.From()), "%v", table.From())
			asked := table.From()
			if asked.IsZero() {
				asked = noon.Add(-24 * time.Hour)
			}
			requireTimes(t, tc.want, nextRuns(table, asked, 3))
		})
	}
}

// An interval is since + n * Every on all replicas, whenever they are asked, with whatever reading.
func TestIntervalsCountFromSince(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		every := time.Duration(rapid.Int64Range(int64(timetable.MinInterval), int64(timetable.MaxSpan)).Draw(t, "every"))
		n := rapid.Int64Range(-20, 20).Draw(t, "n") % (int64(100*365*24*time.Hour)/int64(every) + 1)
		into := time.Duration(rapid.Int64Range(0, int64(every)-1).Draw(t, "into"))
		since := noon.Add(time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "since")))
		got := made(t, interval(every), since).Next(since.Add(time.Duration(n)*every + into))
		require.True(t, since.Add(time.Duration(n+1)*every).Equal(got), "%v", got)
	})
}

// A backfill may have times of before the definition was made.
func TestTimesBeforeSince(t *testing.T) {
	at := noon.AddDate(0, 0, -4)
	for _, spec := range []timetable.Spec{days(2, atTimes("13h")), interval(48 * time.Hour), cron("0 13 * * *")} {
		require.True(t, made(t, spec, noon).Next(at).Before(noon))
	}
	require.True(t, made(t, days(2, atTimes("13h")), noon).Next(at).Equal(at.Add(time.Hour)))
}

func TestChains(t *testing.T) {
	get := func(spec timetable.Spec) joblog.Chain {
		c, ok := made(t, spec, noon).(joblog.Chain)
		require.True(t, ok)
		return c
	}
	fromEnd := interval(time.Hour)
	fromEnd.FromEnd = true
	c := get(fromEnd)
	require.True(t, c.FromEnd())
	require.Equal(t, noon.Add(time.Hour), c.Next(c.From()))
	require.Equal(t, noon.Add(3*time.Hour), c.Follow(noon.Add(2*time.Hour)))

	fromEnd.Start = noon.Add(time.Minute)
	require.Equal(t, fromEnd.Start, get(fromEnd).Next(noon))
	fromEnd.Start = noon.Add(-time.Minute)
	require.Equal(t, noon.Add(time.Hour), get(fromEnd).Next(noon))
	fromEnd.Stop = noon.Add(2 * time.Hour)
	require.Zero(t, get(fromEnd).Follow(noon.Add(time.Hour)))
	fromEnd.AtOnce = true
	c = get(fromEnd)
	require.Equal(t, noon, c.Next(noon))
	require.True(t, c.From().Before(noon))

	c = get(random(time.Minute, time.Minute+3*time.Millisecond))
	require.False(t, c.FromEnd())
	seen := make(map[time.Duration]bool)
	for range 1000 {
		pause := c.Follow(noon).Sub(noon)
		require.GreaterOrEqual(t, pause, time.Minute)
		require.LessOrEqual(t, pause, time.Minute+3*time.Millisecond)
		seen[pause] = true
	}
	require.GreaterOrEqual(t, len(seen), 3)
}

func TestSpecsThatAreRefused(t *testing.T) {
	nine := atTimes("9h")
	for option, specs := range map[string][]timetable.Spec{
		"gocron.CronJob": {
			cron("0 3 * *"), cron("0 0 25 * * *"), cron("@every 5m"), cron("TZ=Nowhere/None 0 3 * * *"), cron("TZ=UTC CRON_TZ=UTC 0 3 * * *"), cron("TZ=UTC"), cron(""),
			{Kind: timetable.Crontab, Text: "0 0 3 * * *"}, // a field of seconds
		},
		"gocron.DurationJob":              {interval(0), interval(-time.Hour), interval(timetable.MinInterval - 1), interval(timetable.MaxSpan + 1)},
		"gocron.DurationRandomJob":        {random(time.Millisecond, time.Hour), random(time.Hour, time.Minute), random(time.Hour, timetable.MaxSpan+1)},
		"gocron.DailyJob":                 {days(0, nine), days(1, nil), days(1, atTimes("24h")), days(1, atTimes("-1h")), days(4000, nine)},
		"gocron.WeeklyJob":                {weeks(1, nil, nine)},
		"gocron.MonthlyJob":               {months(1, nil, nine)},
		"gocron.OneTimeJob":               {once()},
		"gocron.OneTimeJobStartDateTimes": {once(noon, noon.Add(time.Millisecond))},
		"definition":                      {{Kind: 99}},
	} {
		for _, spec := range specs {
			_, err := timetable.New(spec)
			var refused *timetable.OptionError
			require.ErrorAs(t, err, &refused, "%+v", spec)
			require.Equal(t, option, refused.Option)
			require.True(t, strings.HasPrefix(err.Error(), "scheduler: "+option+": "))
			if option == "gocron.CronJob" && strings.HasPrefix(spec.Text, "0") {
				require.Error(t, errors.Unwrap(refused), "what the parser says")
			}
		}
	}
}

// No two due times are farther apart than the definition says, with a day to spare as the nodes
// have it.
func TestRest(t *testing.T) {
	hours, weekdays := atTimes("08h", "08h01m"), []time.Weekday{time.Monday, time.Tuesday}
	for name, spec := range map[string]timetable.Spec{
		"all day": cron("* * * * *"), "once a day": cron("30 2 * * *"), "office hours": cron("*/20 8-18 * * 1-5"), "some days": cron("0 9 1-5 * *"),
		"the 31st": cron("0 9 31 * *"), "December": cron("0 9 * 12 *"), "some days or Mondays": cron("0 9 1-5 * 1"), "every fourth day": days(4, hours),
		"every third week":   {Kind: timetable.Weekly, Units: 3, Times: hours, Weekdays: weekdays},
		"every second month": {Kind: timetable.Monthly, Units: 2, Times: hours, Days: []int{30, 31}},
		"some times":         once(after(0, 1, 100000)...),
	} {
		t.Run(name, func(t *testing.T) {
			d, err := timetable.New(spec)
			require.NoError(t, err)
			table, at, longest := d.Table(noon), noon, time.Duration(0)
			for at = table.Next(at); at.Before(noon.AddDate(2, 0, 0)); {
				next := table.Next(at)
				if next.IsZero() {
					break
				}
				at, longest = next, max(longest, next.Sub(at))
			}
			require.LessOrEqual(t, longest, d.Rest+24*time.Hour)
		})
	}
}
