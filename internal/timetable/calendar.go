package timetable

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// calendar is the schedule of a daily, weekly or monthly job. Days, weeks and months are numbered.
// A unit is due if its number differs from phase by a multiple of every.
type calendar struct {
	*units
	every int
	phase int
	hours []time.Duration // since midnight, ascending
}

// units are days, weeks or months.
type units struct {
	of   func(day time.Time) int    // the number of the unit that has the day
	days func(unit int) []time.Time // the due days of a unit, ascending
}

// maxUnits bounds the search for a due unit: a job on the 31st of every twelfth month from June on
// is never due.
const maxUnits = 1000

// next returns the first due time after another, both as the wall clock shows them.
func (c *calendar) next(after time.Time) time.Time {
	unit := c.of(date(after.Date()))
	if off := floorMod(unit-c.phase, c.every); off > 0 {
		unit += c.every - off
	}
	for range maxUnits {
		for _, day := range c.days(unit) {
			for _, hour := range c.hours {
				if at := day.Add(hour); at.After(after) {
					return at
				}
			}
		}
		unit += c.every
	}
	return time.Time{}
}

func date(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

func floorMod(n, by int) int { return ((n % by) + by) % by }

// dayNumber counts days from 1970.
func dayNumber(day time.Time) int {
	seconds := int(day.Unix())
	return (seconds - floorMod(seconds, 86400)) / 86400
}

func dayOf(number int) time.Time { return date(1970, time.January, 1+number) }

func daily() *units {
	return &units{of: dayNumber, days: func(n int) []time.Time { return []time.Time{dayOf(n)} }}
}

// weekly counts weeks from their Sundays. The first day of 1970 was a Thursday.
func weekly(weekdays []time.Weekday) *units {
	return &units{
		of: func(day time.Time) int { n := dayNumber(day) + 4; return (n - floorMod(n, 7)) / 7 },
		days: func(week int) []time.Time {
			days := make([]time.Time, len(weekdays))
			for i, weekday := range weekdays {
				days[i] = dayOf(7*week - 4 + int(weekday))
			}
			return days
		},
	}
}

// monthly leaves out days that a month does not have.
func monthly(days []int) *units {
	return &units{
		of: func(day time.Time) int { return 12*day.Year() + int(day.Month()) - 1 },
		days: func(month int) (due []time.Time) {
			first := date(0, time.Month(month+1), 1)
			length := first.AddDate(0, 1, -1).Day()
			for _, day := range days {
				if day < 0 {
					day += length + 1
				}
				if day >= 1 && day <= length {
					due = append(due, first.AddDate(0, 0, day-1))
				}
			}
			slices.SortFunc(due, time.Time.Compare)
			return due
		},
	}
}

func (t *timetable) newCalendar() error {
	s := t.spec
	hours := slices.Compact(slices.Sorted(slices.Values(s.Times)))
	texts := make([]string, len(hours))
	for i, hour := range hours {
		texts[i] = date(1970, time.January, 1).Add(hour).Format(time.TimeOnly)
	}
	weekdays, days := slices.Compact(slices.Sorted(slices.Values(s.Weekdays))), slices.Compact(slices.Sorted(slices.Values(s.Days)))
	kind := map[Kind]struct {
		option, words string
		units         *units
		none          bool
		rest          time.Duration // how far due days of one unit may be apart: not every month has a 31st
	}{
		Daily:   {"gocron.DailyJob", "days", daily(), false, daylong},
		Weekly:  {"gocron.WeeklyJob", fmt.Sprintf("weeks on %v", weekdays), weekly(weekdays), len(weekdays) == 0, 7 * daylong},
		Monthly: {"gocron.MonthlyJob", fmt.Sprintf("months on %v", days), monthly(days), len(days) == 0, year},
	}[s.Kind]
	switch {
	case s.Units == 0 || s.Units > 10*366:
		return &OptionError{Option: kind.option, Reason: fmt.Sprintf("an interval of %d is not between 1 and ten years of days", s.Units)}
	case len(hours) == 0 || kind.none:
		return &OptionError{Option: kind.option, Reason: "no times or no days are given"}
	case hours[0] < 0 || hours[len(hours)-1] >= 24*time.Hour:
		return &OptionError{Option: kind.option, Reason: fmt.Sprintf("%v is no time of a day", hours)}
	}
	t.rest = min(time.Duration(s.Units), MaxSpan/kind.rest) * kind.rest
	w := wallTimes{zone: s.Zone, later: s.Daylight != DaylightSkip}
	t.words = fmt.Sprintf("every %d %s at %s, %s", s.Units, kind.words, strings.Join(texts, " "), w.words())
	t.base = func(from time.Time) times {
		w := w
		phase := kind.units.of(date(from.In(s.Zone).Date()))
		w.schedule = (&calendar{units: kind.units, every: int(s.Units), phase: phase, hours: hours}).next
		return w.next
	}
	return nil
}
