package timetable_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/internal/timetable"
)

// oracle is a calendar that looks at every day, and knows nothing of gocron.
type oracle struct {
	at   time.Duration
	spec timetable.Spec
	due  func(day time.Time) bool
}

func daysFrom(from, to time.Time) int {
	return int(date(to.Date()).Sub(date(from.Date())) / (24 * time.Hour))
}

// drawOracle draws a schedule of every so many days, weeks or months, which count from a time.
func drawOracle(t *rapid.T, from time.Time) oracle {
	at := []time.Duration{time.Duration(rapid.IntRange(0, 24*60-1).Draw(t, "at")) * time.Minute}
	units := rapid.IntRange(1, 4).Draw(t, "units")
	weekday, day := time.Weekday(rapid.IntRange(0, 6).Draw(t, "weekday")), rapid.IntRange(-31, 31).Draw(t, "day")
	if day == 0 {
		day = 1
	}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return oracle{at[0], cron(fmt.Sprintf("%d %d * * 1-5", int(at[0].Minutes())%60, int(at[0].Hours()))), func(day time.Time) bool {
			return day.Weekday() >= time.Monday && day.Weekday() <= time.Friday
		}}
	case 1:
		return oracle{at[0], days(uint(units), at), func(day time.Time) bool { return daysFrom(from, day)%units == 0 }}
	case 2:
		sunday := from.AddDate(0, 0, -int(from.Weekday()))
		return oracle{at[0], weeks(uint(units), []time.Weekday{weekday, time.Wednesday}, at), func(day time.Time) bool {
			ofWeek := day.AddDate(0, 0, -int(day.Weekday()))
			return (day.Weekday() == weekday || day.Weekday() == time.Wednesday) && daysFrom(sunday, ofWeek)/7%units == 0
		}}
	default:
		return oracle{at[0], months(uint(units), []int{day}, at), func(of time.Time) bool {
			fromEnd := of.Day() - of.AddDate(0, 1, -of.Day()).Day() - 1
			return (of.Day() == day || fromEnd == day) && (12*(of.Year()-from.Year())+int(of.Month()-from.Month()))%units == 0
		}}
	}
}

// Every second day, week, month counts from the start in the definition or from since, and never
// from the time that is asked with.
func TestTimesAgainstACalendar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := date(2024, 1, 1).Add(time.Duration(rapid.IntRange(0, 2*366*24*60).Draw(t, "from")) * time.Minute)
		c := drawOracle(t, from)
		since := from
		if rapid.Bool().Draw(t, "start") {
			c.spec.Start = from
			since = from.Add(time.Duration(rapid.IntRange(-1000, 1000).Draw(t, "since")) * time.Hour)
		}
		table := made(t, c.spec, since)
		asked := from.Add(time.Duration(rapid.IntRange(0, 400*24*60).Draw(t, "asked")) * time.Minute)
		var want []time.Time
		for day := date(asked.AddDate(0, 0, -1).Date()); len(want) < 3; day = day.AddDate(0, 0, 1) {
			if at := day.Add(c.at); c.due(day) && at.After(asked) {
				want = append(want, at)
			}
		}
		requireTimes(t, want, nextRuns(table, asked, 3), "asked at %v", asked)
	})
}

// Where clocks are not changed the times are gocron's own.
func TestTimesAreThoseOfGocron(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hour, minute := uint(rapid.IntRange(0, 22).Draw(t, "hour")), uint(rapid.SampledFrom([]int{0, 30}).Draw(t, "minute"))
		at := gocron.NewAtTimes(gocron.NewAtTime(hour, minute, 0), gocron.NewAtTime(hour+1, 15, 0))
		times := []time.Duration{time.Duration(60*hour+minute) * time.Minute, time.Duration(60*hour+75) * time.Minute}
		units := uint(rapid.IntRange(1, 3).Draw(t, "units"))
		start := date(2026, 1, 1).Add(time.Duration(rapid.IntRange(0, 4*365*24*60).Draw(t, "start"))*time.Minute + time.Millisecond)
		// A job of gocron's that is due in the moment of its start runs beside the question.
		begin := start.Add(time.Duration(rapid.IntRange(-1000, 5000).Draw(t, "begin"))*time.Hour + time.Millisecond)
		var definition gocron.JobDefinition
		var spec timetable.Spec
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			definition, spec = gocron.DailyJob(units, at), days(units, times)
		case 1:
			weekday := time.Weekday(rapid.IntRange(0, 6).Draw(t, "weekday"))
			definition, spec = gocron.WeeklyJob(units, gocron.NewWeekdays(weekday, time.Wednesday), at), weeks(units, []time.Weekday{weekday, time.Wednesday}, times)
		case 2:
			day, fromEnd := rapid.IntRange(1, 28).Draw(t, "date"), -rapid.IntRange(1, 28).Draw(t, "from the end")
			definition, spec = gocron.MonthlyJob(units, gocron.NewDaysOfTheMonth(day, -1, fromEnd), at), months(units, []int{fromEnd, day, -1}, times)
		case 3:
			text := fmt.Sprintf("%d %d,%d * * 1-5", minute, hour, hour+1)
			definition, spec = gocron.CronJob(text, false), cron(text)
		case 4:
			every := time.Duration(rapid.IntRange(1, 100_000).Draw(t, "every")) * time.Second
			definition, spec = gocron.DurationJob(every), interval(every)
		}
		s, err := gocron.NewScheduler(gocron.WithClock(clockwork.NewFakeClockAt(begin)), gocron.WithLocation(time.UTC))
		require.NoError(t, err)
		defer func() { _ = s.Shutdown() }()
		j, err := s.NewJob(definition, gocron.NewTask(func() {}), gocron.WithStartAt(gocron.WithStartDateTimePast(start)))
		require.NoError(t, err)
		s.Start()
		want, err := j.NextRuns(20)
		require.NoError(t, err)
		spec.Start = start
		requireTimes(t, want, nextRuns(made(t, spec, begin.Add(-time.Hour)), begin, 20))
	})
}

func TestDaysThatNeverCome(t *testing.T) {
	june := date(2026, 6, 10)
	require.Empty(t, nextRuns(made(t, months(12, []int{31}, atTimes("3h")), june), june, 1))
	require.Empty(t, nextRuns(made(t, cron("0 0 30 2 *"), june), june, 1))
	leap := nextRuns(made(t, months(12, []int{29}, atTimes("3h")), date(2026, 2, 1)), june, 2)
	requireTimes(t, []time.Time{date(2028, 2, 29).Add(3 * time.Hour), date(2032, 2, 29).Add(3 * time.Hour)}, leap)
}

// A crontab's field is the same in words in whatever way it is written.
func TestWords(t *testing.T) {
	berlin, paris, athens := zone(t, "Europe/Berlin"), zone(t, "Europe/Paris"), zone(t, "Europe/Athens")
	in := func(spec timetable.Spec, location *time.Location) timetable.Spec {
		spec.Zone = location
		return spec
	}
	with := func(spec timetable.Spec, change func(*timetable.Spec)) timetable.Spec {
		change(&spec)
		return spec
	}
	nine, noon := atTimes("9h"), date(2026, 1, 1).Add(12*time.Hour)
	later := func(s *timetable.Spec) { s.Daylight = timetable.DaylightLater }
	for name, same := range map[string][]timetable.Spec{
		"crontab":        {cron("*/15 9-17 * * mon-fri"), cron("0,15,30,45 9,10,11-17 * * 1-5"), cron("0 45,0-30/15 9-17 ? * 5,1,2,3,4"), cron("CRON_TZ=UTC */15 9-17 * * 1-5")},
		"@daily":         {cron("@daily"), cron("0 0 * * *"), cron("@midnight")},
		"zone by name":   {in(cron("0 3 * * *"), berlin), in(cron("0 3 * * *"), paris), cron("TZ=Europe/Berlin 0 3 * * *"), in(cron("CRON_TZ=Europe/Berlin 0 3 * * *"), athens)},
		"times in order": {days(1, atTimes("9h", "17h")), days(1, atTimes("17h", "9h", "9h"))},
		"days in order":  {months(2, []int{1, -1}, nine), months(2, []int{-1, 1, 1}, nine)},
		"daylight":       {days(1, nine), with(days(1, nine), later)},
		"interval":       {interval(90 * time.Second), in(interval(90*time.Second), berlin)},
		"once":           {once(noon, noon.Add(time.Hour)), once(noon.Add(time.Hour).In(berlin), noon)},
		"start at once":  {with(interval(time.Hour), func(s *timetable.Spec) { s.AtOnce = true }), with(interval(time.Hour), func(s *timetable.Spec) { s.AtOnce, s.Start = true, noon })},
	} {
		for _, spec := range same[1:] {
			require.Equal(t, words(t, same[0]), words(t, spec), name)
		}
	}
	seen := make(map[string]int)
	for i, spec := range []timetable.Spec{
		cron("0 3 * * *"), cron("0 3 1 * *"), cron("0 3 * * 1"), cron("0 3 1-31 * 1"), cron("0 3 * 1-12 1"), cron("0 * * * *"), cron("0 0-23 * * *"), cron("0 */2 * * *"), cron("0 0-23/2 * * *"),
		with(cron("0 3 * * *"), later),
		in(cron("0 3 * * *"), berlin), in(cron("0 3 * * *"), athens), days(1, nine), days(2, nine), days(1, atTimes("17h")), in(days(1, nine), berlin),
		with(days(1, nine), func(s *timetable.Spec) { s.Daylight = timetable.DaylightSkip }), weeks(1, []time.Weekday{1}, nine), weeks(1, []time.Weekday{2}, nine),
		months(1, []int{1}, nine), months(1, []int{-1}, nine), interval(time.Hour), interval(time.Minute), random(time.Minute, time.Hour), random(time.Second, time.Hour),
		with(interval(time.Hour), func(s *timetable.Spec) { s.FromEnd = true }), with(interval(time.Hour), func(s *timetable.Spec) { s.AtOnce = true }),
		with(interval(time.Hour), func(s *timetable.Spec) { s.Start = noon }), with(interval(time.Hour), func(s *timetable.Spec) { s.Stop = noon }),
		once(noon), {Kind: timetable.Once, AtOnce: true}, {Kind: timetable.Own, Text: "x"},
	} {
		text := words(t, spec)
		require.NotContains(t, seen, text, "%d", i)
		seen[text] = i
	}
	require.Regexp(t, `^cron 0 0-5,30 3 \* \* 1-5, later zone \+01:00 2025-03-30T01:00Z \+02:00 2025-10-26T01:00Z \+01:00 2026-03-29T01:00Z \+02:00 2026-10-25T01:00Z \+01:00 `+
		`then [0-9a-f]{8}, until 2026-01-01T12:00:00Z$`, words(t, with(in(cron("0-5,30 3 * * 1-5"), berlin), func(s *timetable.Spec) { s.Stop = noon; s.Daylight = timetable.DaylightLater })))

	var many []time.Time
	for i := range 500 {
		many = append(many, noon.Add(time.Duration(i)*time.Hour))
	}
	long := words(t, once(many...))
	require.LessOrEqual(t, len(long), 1024)
	many[499] = many[499].Add(time.Second)
	require.NotEqual(t, long, words(t, once(many...)))
	require.True(t, slices.IsSortedFunc(many, time.Time.Compare))

	odd := words(t, timetable.Spec{Kind: timetable.Own, Text: "\x01\xff\n<"})
	require.True(t, strings.HasPrefix(odd, "own cron ???<, "), odd)
}

// Data of one zone that differ in a later year give other due times then, and other words now.
func TestZonesThatPartLater(t *testing.T) {
	seen := make(map[string]time.Time)
	for _, at := range []time.Time{date(2027, 1, 1), date(2028, 1, 1), date(2036, 1, 1)} {
		text := words(t, timetable.Spec{Text: "0 3 * * *", Zone: zoneUntil(t, at)})
		require.NotContains(t, seen, text, "%v", at)
		seen[text] = at
	}
}

// zoneUntil is data of a zone whose offset is an hour, and two hours from a time on.
func zoneUntil(t *testing.T, at time.Time) *time.Location {
	header := func(times, types, letters byte) []byte { // RFC 8536, 3.1
		return append(append([]byte("TZif2"), make([]byte, 15)...), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, times, 0, 0, 0, types, 0, 0, 0, letters)
	}
	first, second := []byte{0, 0, 0x0e, 0x10, 0, 0}, []byte{0, 0, 0x1c, 0x20, 0, 4}
	data := slices.Concat(header(0, 1, 4), first, []byte("+01\x00"), header(1, 2, 8), binary.BigEndian.AppendUint64(nil, uint64(at.Unix())), []byte{1},
		first, second, []byte("+01\x00+02\x00\n<+02>-2\n"))
	zone, err := time.LoadLocationFromTZData("Moved", data)
	require.NoError(t, err)
	return zone
}
