package scheduler

import (
	"cmp"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
)

// schedule is a kind of gocron's schedules, as several replicas see it.
type schedule interface {
	// check refuses what means nothing, or something else, with several replicas.
	check(set settings, elected bool) error
	// String is what replicas compare.
	String() string
	// times returns the times of the job; nil for one with an interval.
	times(policy gocron.DaylightSavingsTimePolicy, zone *time.Location) (timetable, error)
}

type (
	cronSchedule     struct{ gocron.CronJobSchedule }
	durationSchedule struct{ gocron.DurationJobSchedule }
	randomSchedule   struct {
		gocron.DurationRandomJobSchedule
	}
	dailySchedule   struct{ gocron.DailyJobSchedule }
	weeklySchedule  struct{ gocron.WeeklyJobSchedule }
	monthlySchedule struct{ gocron.MonthlyJobSchedule }
	oneTimeSchedule struct{ gocron.OneTimeJobSchedule }
)

// newSchedule returns the schedule of a job, or an error if it does not fit several replicas.
func newSchedule(of gocron.JobSchedule, set settings, elected bool) (schedule, error) {
	s := kindOf(of)
	if s == nil {
		return nil, &OptionError{Option: "definition", Reason: fmt.Sprintf("a schedule of type %T is not known: use gocron %s", of, knownGocron)}
	}
	return s, s.check(set, elected)
}

func kindOf(of gocron.JobSchedule) schedule {
	switch s := of.(type) {
	case gocron.CronJobSchedule:
		return cronSchedule{s}
	case gocron.DurationJobSchedule:
		return durationSchedule{s}
	case gocron.DurationRandomJobSchedule:
		return randomSchedule{s}
	case gocron.DailyJobSchedule:
		return dailySchedule{s}
	case gocron.WeeklyJobSchedule:
		return weeklySchedule{s}
	case gocron.MonthlyJobSchedule:
		return monthlySchedule{s}
	case gocron.OneTimeJobSchedule:
		return oneTimeSchedule{s}
	}
	return nil
}

func (s cronSchedule) check(set settings, _ bool) error { return checkStart(set) }
func (s cronSchedule) String() string                   { return s.Crontab }

func (s cronSchedule) times(policy gocron.DaylightSavingsTimePolicy, zone *time.Location) (timetable, error) {
	return parseCrontab(s.Crontab, policy, zone)
}

func (s durationSchedule) check(settings, bool) error {
	const option = "gocron.DurationJob"
	return cmp.Or(checkGap(option, s.Duration), checkSpan(option, s.Duration))
}

func (s durationSchedule) String() string { return fmt.Sprintf("every %v", s.Duration) }

func (s durationSchedule) times(gocron.DaylightSavingsTimePolicy, *time.Location) (timetable, error) {
	return nil, nil
}

func (s randomSchedule) check(_ settings, elected bool) error {
	const option = "gocron.DurationRandomJob"
	if !elected {
		return &OptionError{Option: option, Reason: "each replica would run it at times of its own: use WithElection, so that the leader alone does"}
	}
	return cmp.Or(checkGap(option, s.Min), checkSpan(option, s.Max))
}

func (s randomSchedule) String() string { return fmt.Sprintf("every %v to %v", s.Min, s.Max) }

func (s randomSchedule) times(gocron.DaylightSavingsTimePolicy, *time.Location) (timetable, error) {
	return nil, nil
}

func (s dailySchedule) check(set settings, _ bool) error {
	return cmp.Or(checkPhase(s.Interval, set), checkStart(set))
}

func (s dailySchedule) String() string {
	return fmt.Sprintf("every %d days at %v", s.Interval, hoursOf(s.AtTimes))
}

func (s dailySchedule) times(policy gocron.DaylightSavingsTimePolicy, zone *time.Location) (timetable, error) {
	return newWallTimes(daily(s.DailyJobSchedule), policy, zone), nil
}

func (s weeklySchedule) check(set settings, _ bool) error {
	return cmp.Or(checkPhase(s.Interval, set), checkStart(set))
}

func (s weeklySchedule) String() string {
	return fmt.Sprintf("every %d weeks on %v at %v", s.Interval, s.DaysOfWeek, hoursOf(s.AtTimes))
}

func (s weeklySchedule) times(policy gocron.DaylightSavingsTimePolicy, zone *time.Location) (timetable, error) {
	return newWallTimes(weekly(s.WeeklyJobSchedule), policy, zone), nil
}

func (s monthlySchedule) check(set settings, _ bool) error {
	return cmp.Or(checkPhase(s.Interval, set), checkStart(set))
}

func (s monthlySchedule) String() string {
	return fmt.Sprintf("every %d months on %v %v at %v", s.Interval, s.Days, s.DaysFromEnd, hoursOf(s.AtTimes))
}

func (s monthlySchedule) times(policy gocron.DaylightSavingsTimePolicy, zone *time.Location) (timetable, error) {
	return newWallTimes(monthly(s.MonthlyJobSchedule), policy, zone), nil
}

func (s oneTimeSchedule) check(set settings, _ bool) error {
	if len(s.StartAt) == 0 {
		return &OptionError{Option: "gocron.OneTimeJobStartImmediately", Reason: "each replica would run it when it starts: give a time with gocron.OneTimeJobStartDateTime, the same on all"}
	}
	if set.has(fieldStopTime) {
		return &OptionError{Option: "gocron.WithStopAt", Reason: "a one-time job ends with its last time: leave it out"}
	}
	for i := 1; i < len(s.StartAt); i++ {
		if err := checkGap("gocron.OneTimeJobStartDateTimes", s.StartAt[i].Sub(s.StartAt[i-1])); err != nil {
			return err
		}
	}
	return checkStart(set)
}

func (s oneTimeSchedule) String() string {
	times := make([]string, len(s.StartAt))
	for i, at := range s.StartAt {
		times[i] = at.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf("at %v", times)
}

func (s oneTimeSchedule) times(gocron.DaylightSavingsTimePolicy, *time.Location) (timetable, error) {
	var times instants
	for _, at := range s.StartAt {
		times = append(times, at.Truncate(time.Millisecond)) // as replicas and nodes know it
	}
	return times, nil
}

// checkStart refuses a start at once, which a duration job alone may have.
func checkStart(set settings) error {
	if !set.has(fieldStartImmediately) {
		return nil
	}
	return &OptionError{Option: "gocron.WithStartImmediately", Reason: "each replica would run it when it starts: use RunNow on one of them"}
}

// checkPhase refuses an interval above one that is counted from no time.
func checkPhase(interval uint, set settings) error {
	if interval <= 1 || set.has(fieldStartTime) {
		return nil
	}
	return &OptionError{Option: "interval", Reason: fmt.Sprintf(
		"every %d periods is counted from the start of each replica: give gocron.WithStartAt(gocron.WithStartDateTimePast(...)) a time that is the same on all, or use gocron.CronJob", interval)}
}

// checkSpan refuses an interval beyond MaxSpan.
func checkSpan(option string, interval time.Duration) error {
	if interval <= MaxSpan {
		return nil
	}
	return &OptionError{Option: option, Reason: fmt.Sprintf("ticks %v apart are too far apart: %v is the most", interval, MaxSpan)}
}

// checkGap refuses ticks that are closer together than MinInterval.
func checkGap(option string, interval time.Duration) error {
	if interval >= MinInterval {
		return nil
	}
	return &OptionError{Option: option, Reason: fmt.Sprintf("ticks %v apart are too close: they are told apart if they are at least %v apart", interval, MinInterval)}
}
