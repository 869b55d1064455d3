package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
	"github.com/tenure-dev/tenure/scheduler/internal/timetable"
)

// specOf says in plain values when a job is due.
func specOf(d *gocronx.Definition, zone *time.Location) (timetable.Spec, error) {
	spec := timetable.Spec{
		Zone: zone, Daylight: timetable.Daylight(d.Daylight), Start: d.Start, Stop: d.Stop,
		AtOnce: d.StartImmediately, FromEnd: d.IntervalFromCompletion,
	}
	switch s := d.Schedule.(type) {
	case gocron.CronJobSchedule:
		spec.Kind, spec.Text, spec.Seconds = timetable.Crontab, s.Crontab, true
		if d.Cron != nil {
			spec.Kind, spec.Next = timetable.Own, d.Cron.Next
		}
	case gocron.DurationJobSchedule:
		spec.Kind, spec.Every = timetable.Interval, s.Duration
	case gocron.DurationRandomJobSchedule:
		spec.Kind, spec.Every, spec.Most = timetable.Random, s.Min, s.Max
	case gocron.DailyJobSchedule:
		spec.Kind, spec.Units, spec.Times = timetable.Daily, s.Interval, timesOf(s.AtTimes)
	case gocron.WeeklyJobSchedule:
		spec.Kind, spec.Units, spec.Times, spec.Weekdays = timetable.Weekly, s.Interval, timesOf(s.AtTimes), s.DaysOfWeek
	case gocron.MonthlyJobSchedule:
		spec.Kind, spec.Units, spec.Times, spec.Days = timetable.Monthly, s.Interval, timesOf(s.AtTimes), slices.Concat(s.Days, s.DaysFromEnd)
	case gocron.OneTimeJobSchedule:
		spec.Kind, spec.At = timetable.Once, s.StartAt
	default:
		return spec, &OptionError{Option: "definition", Reason: fmt.Sprintf("a schedule of type %T is not known: use gocron %s", d.Schedule, gocronx.Version)}
	}
	return spec, nil
}

// timesOf are times of the day.
func timesOf(times []time.Time) []time.Duration {
	of := make([]time.Duration, len(times))
	for i, at := range times {
		of[i] = time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second
	}
	return of
}

// invalidSchedule is timetable's error, in the words of this package.
func invalidSchedule(err error) error {
	if invalid := new(timetable.SpecError); errors.As(err, &invalid) {
		return &OptionError{Option: invalid.Option, Reason: invalid.Reason, Err: err}
	}
	return &OptionError{Option: "definition", Reason: err.Error(), Err: err}
}
