package scheduler

import (
	"slices"
	"time"

	"github.com/go-co-op/gocron/v2"
)

// calendar is the schedule of a daily, weekly or monthly job. Of an interval above one, the time
// that it is asked with tells the phase: its own day, week or month is due, and then every
// so-manieth. The times of the job are asked for with the one before.
type calendar struct {
	every uint
	begin func(day time.Time) time.Time              // the first day of the unit that a day is in
	skip  func(first time.Time, units int) time.Time // the first day of a later unit
	days  func(first time.Time) []time.Time          // the days of a unit that are due, ascending
	hours []time.Duration                            // since midnight, ascending
}

// maxUnits bounds how far a calendar looks: a job on the 31st of every twelfth month from June is
// never due.
const maxUnits = 1000

func (c *calendar) next(after time.Time) time.Time {
	year, month, day := after.Date()
	first := c.begin(time.Date(year, month, day, 0, 0, 0, 0, time.UTC))
	for range maxUnits {
		for _, day := range c.days(first) {
			for _, hour := range c.hours {
				if at := day.Add(hour); at.After(after) {
					return at
				}
			}
		}
		first = c.skip(first, int(c.every))
	}
	return time.Time{}
}

// hoursOf returns gocron's times of the day, which it gives as times of some day.
func hoursOf(times []time.Time) []time.Duration {
	hours := make([]time.Duration, len(times))
	for i, at := range times {
		hour, minute, second := at.Clock()
		hours[i] = time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second
	}
	slices.Sort(hours)
	return hours
}

func daily(s gocron.DailyJobSchedule) *calendar {
	return &calendar{
		every: s.Interval, hours: hoursOf(s.AtTimes),
		begin: func(day time.Time) time.Time { return day },
		skip:  func(first time.Time, n int) time.Time { return first.AddDate(0, 0, n) },
		days:  func(first time.Time) []time.Time { return []time.Time{first} },
	}
}

// weekly counts weeks from their Sundays.
func weekly(s gocron.WeeklyJobSchedule) *calendar {
	return &calendar{
		every: s.Interval, hours: hoursOf(s.AtTimes),
		begin: func(day time.Time) time.Time { return day.AddDate(0, 0, -int(day.Weekday())) },
		skip:  func(first time.Time, n int) time.Time { return first.AddDate(0, 0, 7*n) },
		days: func(first time.Time) []time.Time {
			days := make([]time.Time, len(s.DaysOfWeek))
			for i, weekday := range s.DaysOfWeek {
				days[i] = first.AddDate(0, 0, int(weekday))
			}
			slices.SortFunc(days, time.Time.Compare)
			return days
		},
	}
}

// monthly leaves out days that a month does not have.
func monthly(s gocron.MonthlyJobSchedule) *calendar {
	return &calendar{
		every: s.Interval, hours: hoursOf(s.AtTimes),
		begin: func(day time.Time) time.Time { return day.AddDate(0, 0, 1-day.Day()) },
		skip:  func(first time.Time, n int) time.Time { return first.AddDate(0, n, 0) },
		days: func(first time.Time) []time.Time {
			var days []time.Time
			length := first.AddDate(0, 1, -1).Day()
			for _, day := range s.Days {
				if day <= length {
					days = append(days, first.AddDate(0, 0, day-1))
				}
			}
			for _, day := range s.DaysFromEnd {
				if -day <= length {
					days = append(days, first.AddDate(0, 0, length+day))
				}
			}
			slices.SortFunc(days, time.Time.Compare)
			return days
		},
	}
}
