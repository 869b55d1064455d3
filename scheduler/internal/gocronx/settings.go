package gocronx

import (
	"fmt"
	"reflect"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/internal/timetable"
)

// Settings are the values that options of gocron.NewScheduler set.
type Settings struct {
	Limit     uint                    // gocron.WithLimitConcurrentJobs; zero without
	LimitMode gocron.LimitMode        // of Limit
	Monitor   gocron.SchedulerMonitor // gocron.WithSchedulerMonitor; NoMonitor without

	handed []gocron.SchedulerOption // for the Executor: not the limit
}

// ReadSettings reads options, none of which may be nil. It applies each alone. It refuses options
// for which gocron would do what a Scheduler does itself, and options that panic, with a
// *timetable.OptionError. Errors that options return are left to NewExecutor.
func ReadSettings(opts ...gocron.SchedulerOption) (*Settings, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	s := &Settings{Monitor: NoMonitor{}}
	for i, o := range opts {
		var f schedulerFields
		if p := panicOf(func() { f = aloneScheduler(o) }); p != nil {
			return nil, &timetable.OptionError{Option: "gocron.SchedulerOption", Reason: fmt.Sprintf("option %d panics: %v", i, p)}
		}
		for _, refused := range []struct {
			given          bool
			option, reason string
		}{
			{f.Elector != nil, "gocron.WithDistributedElector", "gocron would not lock any job then: use WithElection"},
			{f.Locker != nil, "gocron.WithDistributedLocker", "the Scheduler is its own locker: leave it out"},
			{f.Clock != nil, "gocron.WithClock", "gocron times nothing here: test with testing/synctest and redlocktest"},
			{f.Location != nil, "gocron.WithLocation", "gocron times nothing here: use WithLocation of this package"},
			{f.StopTimeout > 0, "gocron.WithStopTimeout", "leases go by it too: use WithStopTimeout of this package"},
			{f.Global != nil, "gocron.WithGlobalJobOptions", "each job's options are looked at: use WithJobOptions of this package"},
		} {
			if refused.given {
				return nil, &timetable.OptionError{Option: refused.option, Reason: refused.reason}
			}
		}
		if f.Monitor != nil {
			s.Monitor = f.Monitor
		}
		if f.Limit > 0 {
			s.Limit, s.LimitMode = f.Limit, f.LimitMode
			continue
		}
		s.handed = append(s.handed, o)
	}
	return s, nil
}

// aloneScheduler returns the fields of a scheduler that has only one option.
func aloneScheduler[S any, O ~func(*S) error](o O) (f schedulerFields) {
	s := new(S)
	_ = o(s)
	l, _ := ofSchedulers()
	l.read(reflect.ValueOf(s), reflect.ValueOf(&f).Elem())
	return f
}

// NoMonitor is the monitor of a user who has set none: it does nothing.
type NoMonitor struct{}

func (NoMonitor) SchedulerStarted()                                   {}
func (NoMonitor) SchedulerStopped()                                   {}
func (NoMonitor) SchedulerShutdown()                                  {}
func (NoMonitor) JobRegistered(gocron.Job)                            {}
func (NoMonitor) JobUnregistered(gocron.Job)                          {}
func (NoMonitor) JobStarted(gocron.Job)                               {}
func (NoMonitor) JobRunning(gocron.Job)                               {}
func (NoMonitor) JobFailed(gocron.Job, error)                         {}
func (NoMonitor) JobCompleted(gocron.Job)                             {}
func (NoMonitor) JobExecutionTime(gocron.Job, time.Duration)          {}
func (NoMonitor) JobSchedulingDelay(gocron.Job, time.Time, time.Time) {}
func (NoMonitor) ConcurrencyLimitReached(string, gocron.Job)          {}
