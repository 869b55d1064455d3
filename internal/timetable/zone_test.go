package timetable_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/timetable"
)

// A time that the clock skips is left out by crontabs and later by what is skipped for other jobs,
// or what the policy says. One that it shows twice is due the first time, but for crontabs of every
// hour.
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
		// Clocks are set forward: Berlin from 2 to 3, New York from 2 to 3, Lord Howe from 2 to
		// 2:30, Havana from 0 to 1.
		{"cron, forward", "Europe/Berlin", cron("30 2 * * *"), timetable.DaylightDefault, "2026-03-28 12:00", "2026-03-30 12:00", []string{"30 02:30 +02"}},
		{"cron, forward, later", "Europe/Berlin", cron("30 2 * * *"), timetable.DaylightLater, "2026-03-28 12:00", "2026-03-30 12:00",
			[]string{"29 03:30 +02", "30 02:30 +02"}},
		{"every half hour, forward", "Europe/Berlin", cron("*/30 * * * *"), timetable.DaylightDefault, "2026-03-29 01:00", "2026-03-29 04:00",
			[]string{"29 01:30 +01", "29 03:00 +02", "29 03:30 +02", "29 04:00 +02"}},
		{"daily, forward", "Europe/Berlin", days(1, atTimes("2h30m")), timetable.DaylightDefault, "2026-03-28 12:00", "2026-03-30 12:00", []string{"29 03:30 +02", "30 02:30 +02"}},
		{"daily, forward, asked between", "Europe/Berlin", days(1, atTimes("2h30m")), timetable.DaylightDefault, "2026-03-29 03:15", "2026-03-29 12:00", []string{"29 03:30 +02"}},
		{"daily, forward, skipped", "Europe/Berlin", days(1, atTimes("2h30m")), timetable.DaylightSkip, "2026-03-28 12:00", "2026-03-30 12:00", []string{"30 02:30 +02"}},
		{"several a day, forward", "Europe/Berlin", days(1, atTimes("2h30m", "3h0m", "3h30m")), timetable.DaylightDefault, "2026-03-29 00:00", "2026-03-29 12:00",
			[]string{"29 03:00 +02", "29 03:30 +02"}},
		{"daily, half an hour forward", "Australia/Lord_Howe", days(1, atTimes("2h15m")), timetable.DaylightDefault, "2026-10-03 12:00", "2026-10-05 12:00", []string{"4 02:45 +11", "5 02:15 +11"}},
		// gocron's own daily job is not due any more after this day.
		{"daily, forward at midnight", "America/Havana", days(1, atTimes("0h30m", "10h0m")), timetable.DaylightDefault, "2026-03-07 12:00", "2026-03-09 12:00",
			[]string{"8 01:30 -04", "8 10:00 -04", "9 00:30 -04", "9 10:00 -04"}},
		// Clocks are set back: Berlin from 3 to 2, New York from 2 to 1, Lord Howe from 2 to 1:30,
		// Casablanca from 3 to 2, London from 2 to 1.
		{"cron, back", "Europe/Berlin", cron("30 2 * * *"), timetable.DaylightDefault, "2026-10-24 12:00", "2026-10-26 12:00", []string{"25 02:30 +02", "26 02:30 +01"}},
		{"cron, back, zone of its own", "America/New_York", cron("CRON_TZ=Europe/Berlin 30 2 * * *"), timetable.DaylightDefault, "2026-10-24 12:00", "2026-10-26 12:00",
			[]string{"24 20:30 -04", "25 21:30 -04"}},
		{"every half hour, back", "Europe/Berlin", cron("*/30 * * * *"), timetable.DaylightDefault, "2026-10-25 01:30", "2026-10-25 03:30",
			[]string{"25 02:00 +02", "25 02:30 +02", "25 02:00 +01", "25 02:30 +01", "25 03:00 +01", "25 03:30 +01"}},
		{"daily, back", "Europe/Berlin", days(1, atTimes("2h30m")), timetable.DaylightDefault, "2026-10-24 12:00", "2026-10-26 12:00", []string{"25 02:30 +02", "26 02:30 +01"}},
		{"daily, back, west", "America/New_York", days(1, atTimes("1h30m")), timetable.DaylightDefault, "2026-10-31 12:00", "2026-11-02 12:00", []string{"1 01:30 -04", "2 01:30 -05"}},
		{"weekly, back", "America/New_York", weeks(1, sundays, atTimes("1h30m")), timetable.DaylightDefault, "2026-10-31 12:00", "2026-11-09 12:00", []string{"1 01:30 -04", "8 01:30 -05"}},
		{"cron, half an hour back", "Australia/Lord_Howe", cron("45 1 * * *"), timetable.DaylightDefault, "2026-04-04 12:00", "2026-04-06 12:00", []string{"5 01:45 +11", "6 01:45 +1030"}},
		{"every quarter, half an hour back", "Australia/Lord_Howe", cron("*/15 * * * *"), timetable.DaylightDefault, "2026-04-05 01:15", "2026-04-05 02:00",
			[]string{"5 01:30 +11", "5 01:45 +11", "5 01:30 +1030", "5 01:45 +1030", "5 02:00 +1030"}},
		{"cron, back for Ramadan", "Africa/Casablanca", cron("30 2 * * *"), timetable.DaylightDefault, "2026-02-14 12:00", "2026-02-16 12:00", []string{"15 02:30 +01", "16 02:30 +00"}},
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
				texts = append(texts, at.In(location).Format("2 15:04 -0700"))
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
