package gocronx

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"

	"github.com/tenure-dev/tenure/internal/timetable"
)

// Definition is the content of a call of NewJob. The caller checks whether its values fit each
// other.
type Definition struct {
	ID       uuid.UUID // gocron.WithIdentifier; zero without
	Name     string    // gocron.WithName; empty without
	Tags     []string  // gocron.WithTags
	Schedule gocron.JobSchedule
	Spec     timetable.Spec // the schedule and its options, checked and sorted by gocron

	LimitedRuns    uint             // zero without
	Singleton      bool             // gocron.WithSingletonMode
	SingletonMode  gocron.LimitMode // of Singleton
	Context        context.Context  // gocron.WithContext; nil without
	WithoutLocking bool             // gocron.WithDisabledDistributedJobLocker
	Own            []any            // the values of Option, in their order

	Task   *Task
	handed []gocron.JobOption // for gocron's own job
}

// epoch is the present time for a Reader, so that no time named by an option has passed.
var epoch = time.Unix(0, 0)

// Reader reads definitions. It is safe for concurrent use. It belongs to the testing/synctest
// bubble that it was made in.
type Reader struct {
	gocron   gocron.Scheduler
	location *time.Location
}

// NewReader makes a Reader. location is the zone of schedules. A Reader need not be closed. Check
// must have returned nil.
func NewReader(location *time.Location) (*Reader, error) {
	s, err := gocron.NewScheduler(gocron.WithClock(clockwork.NewFakeClockAt(epoch)), gocron.WithLocation(location))
	if err != nil {
		return nil, err
	}
	// After Shutdown NewJob still reads and checks, but keeps no job: there is no goroutine to hand
	// the job to.
	return &Reader{s, location}, s.Shutdown()
}

// unnamed and unidentified are the name and the identifier of a job that was given none.
const unnamed = "\x00"

var unidentified = uuid.UUID{0: 1}

// Read returns the Definition that a call of NewJob asks for. Each option is applied twice, once
// alone. Errors are a *timetable.OptionError, or gocron's own.
func (r *Reader) Read(definition gocron.JobDefinition, task gocron.Task, opts ...gocron.JobOption) (*Definition, error) {
	if definition == nil {
		return nil, &timetable.OptionError{Option: "definition", Reason: "is nil: use gocron.CronJob, for example"}
	}
	s, err := sortOptions(opts)
	if err != nil {
		return nil, err
	}
	var f jobFields
	all := append([]gocron.JobOption{gocron.WithName(unnamed), gocron.WithIdentifier(unidentified)}, s.gocron...)
	all = append(all,
		like(gocron.WithName("like"), func(job unsafe.Pointer) error { f = readJob(job); return nil }),
		gocron.WithContext(context.Background()), // a child of the user's context would live as long as that
	)
	var job gocron.Job
	if p := panicOf(func() { job, err = r.gocron.NewJob(definition, task, all...) }); p != nil {
		return nil, &timetable.OptionError{Option: "task", Reason: fmt.Sprintf("the parameters do not fit the function, or one is nil: gocron panics: %v", p)}
	}
	if err != nil {
		return nil, err
	}
	if f.Locker != nil {
		return nil, &timetable.OptionError{Option: "gocron.WithDistributedJobLocker", Reason: "the Scheduler is its own locker: leave it out, or use a bare gocron scheduler"}
	}
	d := &Definition{
		ID: job.ID(), Name: job.Name(), Tags: job.Tags(), Schedule: job.Schedule(),
		LimitedRuns: f.Limit, Singleton: f.Singleton, SingletonMode: f.SingletonMode, Context: f.Context, WithoutLocking: f.WithoutAnyLocking,
		Own: s.own, Task: newTask(f.Function, f.Parameters), handed: s.handed,
	}
	if d.Name == unnamed {
		d.Name = ""
	}
	if d.ID == unidentified {
		d.ID = uuid.Nil
	}
	d.Spec, err = f.spec(d.Schedule, r.location)
	return d, err
}

// spec returns the schedule in plain values.
func (f *jobFields) spec(schedule gocron.JobSchedule, zone *time.Location) (timetable.Spec, error) {
	spec := timetable.Spec{
		Zone: zone, Daylight: timetable.Daylight(f.DaylightSavings), Start: f.Start, Stop: f.Stop, AtOnce: f.StartImmediately, FromEnd: f.FromCompletion,
	}
	switch s := schedule.(type) {
	case gocron.CronJobSchedule:
		spec.Kind, spec.Text, spec.Seconds = timetable.Crontab, s.Crontab, true
		if f.Cron != nil {
			spec.Kind, spec.Next = timetable.Own, f.Cron.Next
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
		spec.AtOnce = spec.AtOnce || len(s.StartAt) == 0 // gocron sets AtOnce after the options
	default:
		return spec, &timetable.OptionError{Option: "definition", Reason: fmt.Sprintf("a schedule of type %T is not known: use gocron %s", schedule, Version)}
	}
	return spec, nil
}

// timesOf returns times of the day. Only hour, minute and second count.
func timesOf(times []time.Time) []time.Duration {
	of := make([]time.Duration, len(times))
	for i, at := range times {
		of[i] = time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second
	}
	return of
}
