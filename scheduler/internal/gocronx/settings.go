package gocronx

import (
	"fmt"
	"time"
	"unsafe"

	"github.com/go-co-op/gocron/v2"
)

// Settings are what options of gocron.NewScheduler set. A Scheduler refuses those that tell it to
// do what it does by itself.
type Settings struct {
	Elector, Locker, Clock, StopTimeout, Location, GlobalJobOptions bool // were given

	Limit     uint                    // gocron.WithLimitConcurrentJobs; zero without
	LimitMode gocron.LimitMode        // of it
	Monitor   gocron.SchedulerMonitor // gocron.WithSchedulerMonitor; one that does nothing without

	handed []gocron.SchedulerOption // for the Executor: not the limit
}

// ReadSettings reads options. Each is applied alone. Errors are an *Error; those that options
// return are left to NewExecutor.
func ReadSettings(opts ...gocron.SchedulerOption) (*Settings, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	s := &Settings{Monitor: noMonitor{}}
	for i, o := range opts {
		if o == nil {
			return nil, &Error{Option: "gocron.SchedulerOption", Reason: fmt.Sprintf("option %d is nil", i)}
		}
		var f schedulerFields
		if p := panicOf(func() { f = aloneScheduler(o) }); p != nil {
			return nil, &Error{Option: "gocron.SchedulerOption", Reason: fmt.Sprintf("option %d panics: %v", i, p)}
		}
		s.Elector = s.Elector || f.elector != nil
		s.Locker = s.Locker || f.locker != nil
		s.Clock = s.Clock || f.clock != nil
		s.StopTimeout = s.StopTimeout || f.stopTimeout != 0
		s.Location = s.Location || f.location != nil
		s.GlobalJobOptions = s.GlobalJobOptions || f.global != nil
		if f.monitor != nil {
			s.Monitor = f.monitor
		}
		if f.limit > 0 {
			s.Limit, s.LimitMode = f.limit, f.limitMode
			continue
		}
		s.handed = append(s.handed, o)
	}
	return s, nil
}

// aloneScheduler returns the fields of a scheduler that has but one option.
func aloneScheduler[S any, O ~func(*S) error](o O) (f schedulerFields) {
	s := new(S)
	_ = o(s)
	l, _ := ofSchedulers()
	l.read(unsafe.Pointer(s), unsafe.Pointer(&f))
	return f
}

// noMonitor is that of a user without one.
type noMonitor struct{}

func (noMonitor) SchedulerStarted()                                   {}
func (noMonitor) SchedulerStopped()                                   {}
func (noMonitor) SchedulerShutdown()                                  {}
func (noMonitor) JobRegistered(gocron.Job)                            {}
func (noMonitor) JobUnregistered(gocron.Job)                          {}
func (noMonitor) JobStarted(gocron.Job)                               {}
func (noMonitor) JobRunning(gocron.Job)                               {}
func (noMonitor) JobFailed(gocron.Job, error)                         {}
func (noMonitor) JobCompleted(gocron.Job)                             {}
func (noMonitor) JobExecutionTime(gocron.Job, time.Duration)          {}
func (noMonitor) JobSchedulingDelay(gocron.Job, time.Time, time.Time) {}
func (noMonitor) ConcurrencyLimitReached(string, gocron.Job)          {}
