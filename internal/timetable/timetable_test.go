package timetable_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
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
		"interval from a time of day":  {timetable.Spec{Kind: timetable.Interval, Every: 20 * time.Minute, Start: date(0, 1, 1).Add(5 * time.Minute)}, after(5, 25, 45), noon},
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

// The hours of a user's own crontab are those of the Scheduler's zone, whatever that of the time is
// that its next one is asked after.
func TestOwnCronIsAskedInTheZone(t *testing.T) {
	tokyo, berlin := zone(t, "Asia/Tokyo"), zone(t, "Europe/Berlin")
	own := timetable.Spec{Kind: timetable.Own, Zone: tokyo, Next: func(at time.Time) time.Time {
		return time.Date(at.Year(), at.Month(), at.Day()+1, 3, 0, 0, 0, at.Location())
	}}
	want := date(2026, 3, 2).Add(18 * time.Hour)
	for _, asked := range []time.Time{noon, noon.In(berlin), noon.In(tokyo)} {
		require.True(t, made(t, own, noon).Next(asked).Equal(want), "%v", asked)
	}
	there := own
	there.Zone = berlin
	require.NotEqual(t, words(t, own), words(t, there))
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

// What the clock shows twice is due the first time, also for who asks between the two.
func TestTimeThatIsShownTwice(t *testing.T) {
	daily := days(1, atTimes("2h30m"))
	daily.Zone = zone(t, "Europe/Berlin")
	next := made(t, daily, date(2026, 1, 1)).Next(date(2026, 10, 25).Add(75 * time.Minute))
	require.True(t, next.Equal(date(2026, 10, 26).Add(90*time.Minute)), "%v", next)
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
	r := joblog.Begin(joblog.Record{Next: noon}, get(fromEnd), joblog.Policy{}, joblog.Verdict{Tick: noon}, joblog.Grant{})
	r, _ = joblog.End(r, get(fromEnd), joblog.Policy{}, joblog.Ending{Own: noon.Add(time.Hour)})
	require.True(t, joblog.Owed(r, get(fromEnd), joblog.Policy{}, noon).Over)
	fromEnd.Stop = noon.Add(3 * time.Hour) // that run does not end the job of a later version
	require.Equal(t, noon.Add(2*time.Hour), joblog.Owed(r, get(fromEnd), joblog.Policy{}, noon).Tick)
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

// A time that the clock skips is left out by crontabs and later by what is skipped for other jobs,
// or what the policy says. One that it shows twice is due the first time, but for crontabs of every
// hour. TestTimesAgainstAClockThatIsWatched has crontabs, for a year.
func TestTimesWhenTheClocksChange(t *testing.T) {
	sundays := []time.Weekday{time.Sunday}
	for _, tc := range []struct {
		name     string
		zone     string
		spec     timetable.Spec
		daylight timetable.Daylight
		from, to string // both are local times
		want     []string
	}{
		// Clocks are set forward: Berlin from 2 to 3, Lord Howe from 2 to 2:30, Havana from 0 to 1.
		{"cron, forward, later", "Europe/Berlin", cron("30 2 * * *"), timetable.DaylightLater, "2026-03-28 12:00", "2026-03-30 12:00",
			[]string{"29 03:30 +02", "30 02:30 +02"}},
		{"daily, forward", "Europe/Berlin", days(1, atTimes("2h30m")), timetable.DaylightDefault, "2026-03-28 12:00", "2026-03-30 12:00", []string{"29 03:30 +02", "30 02:30 +02"}},
		{"daily, forward, asked between", "Europe/Berlin", days(1, atTimes("2h30m")), timetable.DaylightDefault, "2026-03-29 03:15", "2026-03-29 12:00", []string{"29 03:30 +02"}},
		{"daily, forward, skipped", "Europe/Berlin", days(1, atTimes("2h30m")), timetable.DaylightSkip, "2026-03-28 12:00", "2026-03-30 12:00", []string{"30 02:30 +02"}},
		{"several a day, forward", "Europe/Berlin", days(1, atTimes("2h30m", "3h0m", "3h30m")), timetable.DaylightDefault, "2026-03-29 00:00", "2026-03-29 12:00",
			[]string{"29 03:00 +02", "29 03:30 +02"}},
		{"daily, half an hour forward", "Australia/Lord_Howe", days(1, atTimes("2h15m")), timetable.DaylightDefault, "2026-10-03 12:00", "2026-10-05 12:00", []string{"4 02:45 +11", "5 02:15 +11"}},
		// gocron's own daily job is not due any more after this day.
		{"daily, forward at midnight", "America/Havana", days(1, atTimes("0h30m", "10h0m")), timetable.DaylightDefault, "2026-03-07 12:00", "2026-03-09 12:00",
			[]string{"8 01:30 -04", "8 10:00 -04", "9 00:30 -04", "9 10:00 -04"}},
		// Clocks are set back: Berlin from 3 to 2, New York from 2 to 1, Volgograd from 2 to 1.
		{"cron, back, zone of its own", "America/New_York", cron("CRON_TZ=Europe/Berlin 30 2 * * *"), timetable.DaylightDefault, "2026-10-24 12:00", "2026-10-26 12:00",
			[]string{"24 20:30 -04", "25 21:30 -04"}},
		{"@hourly, back", "Europe/Berlin", cron("@hourly"), timetable.DaylightDefault, "2026-10-25 01:30", "2026-10-25 02:45", []string{"25 02:00 +02", "25 02:00 +01"}},
		{"cron, any hour, back", "Europe/Berlin", cron("0 ? * * *"), timetable.DaylightDefault, "2026-10-25 01:30", "2026-10-25 02:45", []string{"25 02:00 +02", "25 02:00 +01"}},
		{"cron, back for good", "Europe/Volgograd", cron("30 1 * * *"), timetable.DaylightDefault, "2020-12-26 12:00", "2020-12-28 12:00", []string{"27 01:30 +04", "28 01:30 +03"}},
		{"daily, back", "Europe/Berlin", days(1, atTimes("2h30m")), timetable.DaylightDefault, "2026-10-24 12:00", "2026-10-26 12:00", []string{"25 02:30 +02", "26 02:30 +01"}},
		{"daily, back, west", "America/New_York", days(1, atTimes("1h30m")), timetable.DaylightDefault, "2026-10-31 12:00", "2026-11-02 12:00", []string{"1 01:30 -04", "2 01:30 -05"}},
		{"weekly, back", "America/New_York", weeks(1, sundays, atTimes("1h30m")), timetable.DaylightDefault, "2026-10-31 12:00", "2026-11-09 12:00", []string{"1 01:30 -04", "8 01:30 -05"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			location := zone(t, tc.zone)
			parse := func(text string) time.Time {
				at, err := time.ParseInLocation("2006-01-02 15:04", text, location)
				require.NoError(t, err)
				return at
			}
			tc.spec.Zone, tc.spec.Daylight = location, tc.daylight
			var texts []string
			for _, at := range between(made(t, tc.spec, date(2026, 1, 1)), parse(tc.from), parse(tc.to)) {
				texts = append(texts, at.In(location).Format("2 15:04 -07"))
			}
			require.Equal(t, tc.want, texts)
		})
	}
}

// Every minute of a year: the times are those of the minutes at which the clock shows what the
// schedule says, seen one after the other.
func TestTimesAgainstAClockThatIsWatched(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "America/Havana", "UTC"} {
		t.Run(name, func(t *testing.T) {
			location := zone(t, name)
			fixed, every := cron("30 0-3 * * *"), cron("30 * * * *")
			fixed.Zone, every.Zone = location, location
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
			requireTimes(t, wantFixed, between(made(t, fixed, begin), begin, end))
			requireTimes(t, wantEvery, between(made(t, every, begin), begin, end))
		})
	}
}
