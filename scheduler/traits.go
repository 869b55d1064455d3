package scheduler

import (
	"fmt"
	"reflect"
	"time"

	"github.com/go-co-op/gocron/v2"
)

// gocron's options are functions on a type that it does not export, so what they set cannot be asked for. To refuse those that mean
// something else with several replicas, they are tried on a zero value of that type, and the fields are read. What a later
// version of gocron calls otherwise is not found, and then not refused: see fields.

// fields is a struct of gocron's that options have been applied to.
type fields struct {
	value   reflect.Value
	missing []string // fields that were asked for and are not there
}

// tried applies gocron's options to a zero value. What an option returns is gocron's affair.
func tried[O any](opts []O, extra ...reflect.Value) *fields {
	target := reflect.New(reflect.TypeFor[O]().In(0).Elem())
	for _, o := range opts {
		if f := reflect.ValueOf(o); !f.IsNil() {
			try(f, append([]reflect.Value{target}, extra...))
		}
	}
	return &fields{value: target.Elem()}
}

// try survives an option that needs more than a zero value.
func try(f reflect.Value, in []reflect.Value) {
	defer func() { _ = recover() }()
	f.Call(in)
}

// set reports whether a field, or one of a nested struct, is not zero.
func (f *fields) set(path ...string) bool {
	v := f.value
	for _, name := range path {
		if v = v.FieldByName(name); !v.IsValid() {
			f.missing = append(f.missing, name)
			return false
		}
	}
	return !v.IsZero()
}

// refusal is a setting that is not for a Scheduler, and what to do instead.
type refusal struct {
	option string
	path   []string
	reason string
}

var schedulerRefusals = []refusal{
	{"gocron.WithDistributedElector", []string{"exec", "elector"}, "gocron would not lock any job then: use WithElection"},
	{"gocron.WithDistributedLocker", []string{"exec", "locker"}, "the Scheduler is its own locker: leave it out"},
	{"gocron.WithClock", []string{"exec", "clock"}, "ticks are computed too: use WithClock of this package"},
	{"gocron.WithLocation", []string{"location"}, "ticks are computed too: use WithLocation of this package"},
	{"gocron.WithStopTimeout", []string{"exec", "stopTimeout"}, "leases go by it too: use WithStopTimeout of this package"},
	{"gocron.WithGlobalJobOptions", []string{"globalJobOptions"}, "what they set cannot be checked for each job: give them to NewJob"},
}

var jobRefusals = []refusal{
	{"gocron.WithDistributedJobLocker", []string{"locker"}, "the Scheduler is its own locker: leave it out, or use a bare gocron scheduler"},
	{"gocron.WithContext", []string{"parentCtx"}, "the Scheduler passes the run by it: give values to WithContext of this package"},
	{"gocron.WithLimitedRuns", []string{"limitRunsTo"}, "each replica would count its own runs: remove the job when the work is done"},
	{"gocron.WithIntervalFromCompletion", []string{"intervalFromCompletion"},
		"each replica would count from its own runs: a run is never overlapped by the next as it is"},
	{"gocron.WithSingletonMode", []string{"singletonMode"},
		"the job's lease lets one run go on at a time, on all replicas: leave it out, or use WithOverlap(OverlapQueue)"},
}

// check returns an error for the first setting that is refused.
func (f *fields) check(refusals []refusal) error {
	for _, r := range refusals {
		if f.set(r.path...) {
			return &OptionError{Option: r.option, Reason: r.reason}
		}
	}
	return nil
}

// warning says what could not be checked.
func (f *fields) warning() string {
	if len(f.missing) == 0 {
		return ""
	}
	return fmt.Sprintf("scheduler: this version of gocron does not tell %q of its options, so that unsuitable ones are not refused", f.missing)
}

func triedScheduler(opts []gocron.SchedulerOption) *fields { return tried(opts) }

func triedJob(opts []gocron.JobOption, now time.Time) *fields {
	return tried(opts, reflect.ValueOf(now))
}

// suits refuses schedules that mean nothing, or something else, with several replicas.
func suits(schedule gocron.JobSchedule, tried *fields, elected bool) error {
	immediately := tried.set("startImmediately")
	anchored := tried.set("startTime")
	phase := func(interval uint) error {
		if interval > 1 && !anchored {
			return &OptionError{Option: "interval", Reason: fmt.Sprintf(
				"every %d periods is counted from the start of each replica: give gocron.WithStartAt(gocron.WithStartDateTimePast(...)) a time that is the same on all, or use gocron.CronJob", interval)}
		}
		return nil
	}
	switch s := schedule.(type) {
	case gocron.DurationJobSchedule:
		if s.Duration < time.Millisecond {
			return &OptionError{Option: "gocron.DurationJob", Reason: fmt.Sprintf("%v is below a millisecond, by which ticks are told apart", s.Duration)}
		}
		return nil
	case gocron.DurationRandomJobSchedule:
		if !elected {
			return &OptionError{Option: "gocron.DurationRandomJob", Reason: "each replica would run it at times of its own: use WithElection, so that the leader alone does"}
		}
		return nil
	case gocron.OneTimeJobSchedule:
		if len(s.StartAt) == 0 {
			return &OptionError{Option: "gocron.OneTimeJobStartImmediately", Reason: "each replica would run it when it starts: give a time with gocron.OneTimeJobStartDateTime, the same on all"}
		}
	case gocron.DailyJobSchedule:
		if err := phase(s.Interval); err != nil {
			return err
		}
	case gocron.WeeklyJobSchedule:
		if err := phase(s.Interval); err != nil {
			return err
		}
	case gocron.MonthlyJobSchedule:
		if err := phase(s.Interval); err != nil {
			return err
		}
	}
	if immediately {
		return &OptionError{Option: "gocron.WithStartImmediately", Reason: "each replica would run it when it starts: use RunNow on one of them"}
	}
	return nil
}

// timeless leaves out the options that name times, which are in the past when missed ticks are computed.
func timeless(opts []gocron.JobOption, now time.Time) []gocron.JobOption {
	var kept []gocron.JobOption
	for _, o := range opts {
		if f := triedJob([]gocron.JobOption{o}, now); !f.set("startTime") && !f.set("startImmediately") && !f.set("stopTime") {
			kept = append(kept, o)
		}
	}
	return kept
}
