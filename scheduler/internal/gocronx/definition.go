package gocronx

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
)

// Definition is what NewJob was asked for. Locations and interplay of its values are the caller's
// affair.
type Definition struct {
	ID   uuid.UUID // gocron.WithIdentifier; zero without
	Name string    // gocron.WithName; empty without
	Tags []string  // gocron.WithTags
	// Schedule is one of gocron's seven structs. gocron has checked and sorted the values. Of the
	// times of a day only hour, minute and second mean something. A crontab is one that gocron can
	// parse: five or six fields, or a word such as @daily, after CRON_TZ= or TZ= if it names a zone;
	// that of a Cron of the user's own is one that this finds valid.
	Schedule gocron.JobSchedule
	Cron     gocron.Cron // gocron.WithCronImplementation, of crontabs; nil for gocron's own
	Daylight gocron.DaylightSavingsTimePolicy

	Start, Stop            time.Time // gocron.WithStartAt, WithStopAt; they may have passed
	StartImmediately       bool      // also a one-time job without times
	IntervalFromCompletion bool
	LimitedRuns            uint             // zero without
	Singleton              bool             // gocron.WithSingletonMode
	SingletonMode          gocron.LimitMode // of it
	Context                context.Context  // gocron.WithContext; nil without
	Locker                 bool             // gocron.WithDistributedJobLocker
	WithoutLocking         bool             // gocron.WithDisabledDistributedJobLocker
	Own                    []any            // the values of Option, in their order

	Task   *Task
	handed []gocron.JobOption // for gocron's own job
}

// epoch is the time of day for a Reader: no time that options name has passed then.
var epoch = time.Unix(0, 0)

// Reader reads definitions. It is safe for concurrent use. It belongs to the testing/synctest
// bubble that it was made in.
type Reader struct{ gocron gocron.Scheduler }

// NewReader makes one. location is that of schedules, for a Cron of the user's own. It holds
// nothing to be closed.
func NewReader(location *time.Location) (*Reader, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	s, err := gocron.NewScheduler(gocron.WithClock(clockwork.NewFakeClockAt(epoch)), gocron.WithLocation(location))
	if err != nil {
		return nil, err
	}
	// Afterwards NewJob still reads and checks, and then keeps nothing: there is no goroutine to
	// hand the job to.
	return &Reader{s}, s.Shutdown()
}

// unnamed and unidentified are what a job has that was given nothing.
const unnamed = "\x00"

var unidentified = uuid.UUID{0: 1}

// Read returns what NewJob is asked for. Options are applied twice, once each alone. Errors are an
// *Error, or gocron's own.
func (r *Reader) Read(definition gocron.JobDefinition, task gocron.Task, opts ...gocron.JobOption) (*Definition, error) {
	if definition == nil {
		return nil, &Error{Option: "definition", Reason: "is nil: use gocron.CronJob, for example"}
	}
	s, err := sortOptions(opts)
	if err != nil {
		return nil, err
	}
	var f jobFields
	all := append([]gocron.JobOption{gocron.WithName(unnamed), gocron.WithIdentifier(unidentified)}, s.gocron...)
	all = append(all,
		like(gocron.WithName("like"), func(job unsafe.Pointer) error { f = readJob(job); return nil }),
		gocron.WithContext(context.Background()), // the user's would keep the job's
	)
	var job gocron.Job
	if p := panicOf(func() { job, err = r.gocron.NewJob(definition, task, all...) }); p != nil {
		return nil, &Error{Option: "task", Reason: fmt.Sprintf("the parameters do not fit the function, or one is nil: gocron panics: %v", p)}
	}
	if err != nil {
		return nil, err
	}
	d := &Definition{
		ID: job.ID(), Name: job.Name(), Tags: job.Tags(), Schedule: job.Schedule(), Daylight: f.daylightSavings,
		Start: f.start, Stop: f.stop, StartImmediately: f.startImmediately, IntervalFromCompletion: f.fromCompletion,
		LimitedRuns: f.limit, Singleton: f.singleton, SingletonMode: f.singletonMode, Context: f.context,
		Locker: f.locker != nil, WithoutLocking: f.withoutAnyLocking, Own: s.own,
		Task: newTask(f.function, f.parameters), handed: s.handed,
	}
	if d.Name == unnamed {
		d.Name = ""
	}
	if d.ID == unidentified {
		d.ID = uuid.Nil
	}
	switch schedule := d.Schedule.(type) {
	case gocron.CronJobSchedule:
		d.Cron = f.cron
	case gocron.OneTimeJobSchedule:
		d.StartImmediately = d.StartImmediately || len(schedule.StartAt) == 0 // gocron sets it after the options
	}
	return d, nil
}
