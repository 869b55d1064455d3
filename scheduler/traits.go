package scheduler

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/go-co-op/gocron/v2"
)

// gocron's options are functions on a type that it does not export, so what they set cannot be
// asked for. To refuse those that mean something else with several replicas, they are tried on a
// zero value of that type, and the fields are read. Where a later version of gocron calls a field
// otherwise, or an option does not work on a zero value, nobody can say what was asked for: then
// New and NewJob refuse.

// knownGocron is the version of gocron whose fields are known.
const knownGocron = "v2.22.0"

// fields is a struct of gocron's that options have been applied to.
type fields struct {
	value   reflect.Value
	given   bool     // there were options
	missing []string // fields that were asked for and are not there
	panics  []string // of options, when they were tried
}

// tried applies gocron's options to a zero value. The errors that options return are gocron's
// affair.
func tried[O any](opts []O, extra ...reflect.Value) *fields {
	target := reflect.New(reflect.TypeFor[O]().In(0).Elem())
	f := &fields{value: target.Elem(), given: len(opts) > 0}
	for i, o := range opts {
		if option := reflect.ValueOf(o); !option.IsNil() {
			f.try(i, option, append([]reflect.Value{target}, extra...))
		}
	}
	return f
}

// try survives an option that needs more than a zero value.
func (f *fields) try(i int, option reflect.Value, in []reflect.Value) {
	defer func() {
		if p := recover(); p != nil {
			f.panics = append(f.panics, fmt.Sprintf("option %d panics: %v", i, p))
		}
	}()
	option.Call(in)
}

// get returns a field, or one of a nested struct; the zero Value if it is not there.
func (f *fields) get(path ...string) reflect.Value {
	v := f.value
	for _, name := range path {
		if v = v.FieldByName(name); !v.IsValid() {
			f.missing = append(f.missing, name)
			return v
		}
	}
	return v
}

// set reports whether a field, or one of a nested struct, is not zero.
func (f *fields) set(path ...string) bool {
	v := f.get(path...)
	return v.IsValid() && !v.IsZero()
}

// number returns a field that is an integer.
func (f *fields) number(path ...string) int64 {
	v := f.get(path...)
	if !v.IsValid() || !v.CanInt() {
		return 0
	}
	return v.Int()
}

// unknown returns an error if options were given and what they set could not be read. It is to be
// asked when all has been read.
func (f *fields) unknown() error {
	if !f.given || len(f.missing) == 0 { //mutant:unknown-gocron-taken
		return nil
	}
	return &OptionError{Option: "gocron", Reason: fmt.Sprintf("this version does not tell %q of its options, so that those which do not fit "+
		"several replicas cannot be refused: use gocron %s (go get github.com/go-co-op/gocron/v2@%s), or a Tenure that knows yours",
		f.missing, knownGocron, knownGocron)}
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
	{"gocron.WithGlobalJobOptions", []string{"globalJobOptions"}, "each job's options are looked at: use WithGlobalJobOptions of this package"},
}

var jobRefusals = []refusal{
	{"gocron.WithDistributedJobLocker", []string{"locker"}, "the Scheduler is its own locker: leave it out, or use a bare gocron scheduler"},
	{"gocron.WithContext", []string{"parentCtx"}, "the Scheduler passes the run by it: give values to WithContext of this package"},
	{"gocron.WithLimitedRuns", []string{"limitRunsTo"}, "each replica would count its own runs: remove the job when the work is done"},
	{"gocron.WithIntervalFromCompletion", []string{"intervalFromCompletion"},
		"each replica would count from its own runs: a run is never overlapped by the next as it is"},
}

// check returns an error for the first setting that is refused, or for an option that panics.
func (f *fields) check(refusals []refusal) error {
	if len(f.panics) > 0 {
		return &OptionError{Option: "gocron", Reason: f.panics[0]}
	}
	for _, r := range refusals {
		if f.set(r.path...) {
			return &OptionError{Option: r.option, Reason: r.reason}
		}
	}
	return nil
}

func triedScheduler(opts []gocron.SchedulerOption) *fields { return tried(opts) }

func triedJob(opts []gocron.JobOption, now time.Time) *fields {
	return tried(opts, reflect.ValueOf(now))
}

// singleton returns what gocron.WithSingletonMode asks for in the words of WithOverlap: runs
// exclude each other anyway, on all replicas.
func singleton(tried *fields) (o Overlap, asked bool) {
	if !tried.set("singletonMode") {
		return 0, false
	}
	if gocron.LimitMode(tried.number("singletonLimitMode")) == gocron.LimitModeWait {
		return OverlapQueue, true
	}
	return OverlapSkip, true
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
		return cmp.Or(apart("gocron.DurationJob", s.Duration), near("gocron.DurationJob", s.Duration))
	case gocron.DurationRandomJobSchedule:
		if !elected {
			return &OptionError{Option: "gocron.DurationRandomJob", Reason: "each replica would run it at times of its own: use WithElection, so that the leader alone does"}
		}
		return cmp.Or(apart("gocron.DurationRandomJob", s.Min), near("gocron.DurationRandomJob", s.Max))
	case gocron.OneTimeJobSchedule:
		if len(s.StartAt) == 0 {
			return &OptionError{Option: "gocron.OneTimeJobStartImmediately", Reason: "each replica would run it when it starts: give a time with gocron.OneTimeJobStartDateTime, the same on all"}
		}
		if tried.set("stopTime") {
			return &OptionError{Option: "gocron.WithStopAt", Reason: "a one-time job ends with its last time: leave it out"}
		}
		for i := 1; i < len(s.StartAt); i++ {
			if err := apart("gocron.OneTimeJobStartDateTimes", s.StartAt[i].Sub(s.StartAt[i-1])); err != nil {
				return err
			}
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

// near refuses an interval beyond MaxSpan.
func near(option string, interval time.Duration) error {
	if interval <= MaxSpan { //mutant:interval-without-bound
		return nil
	}
	return &OptionError{Option: option, Reason: fmt.Sprintf("ticks %v apart are too far apart: %v is the most", interval, MaxSpan)}
}

// apart refuses ticks that are closer together than MinInterval.
func apart(option string, interval time.Duration) error {
	if interval >= MinInterval {
		return nil
	}
	return &OptionError{Option: option, Reason: fmt.Sprintf("ticks %v apart are too close: they are told apart if they are at least %v apart", interval, MinInterval)}
}

// without leaves out the options that set one of the fields.
func without(opts []gocron.JobOption, now time.Time, names ...string) []gocron.JobOption {
	var kept []gocron.JobOption
	for _, o := range opts {
		f := triedJob([]gocron.JobOption{o}, now)
		if !slices.ContainsFunc(names, func(name string) bool { return f.set(name) }) {
			kept = append(kept, o)
		}
	}
	return kept
}

// timeless leaves out the options that name times, which are in the past when missed ticks are
// computed.
func timeless(opts []gocron.JobOption, now time.Time) []gocron.JobOption {
	return without(opts, now, "startTime", "startImmediately", "stopTime")
}

// describe says what a schedule is, as replicas may compare it.
func describe(schedule gocron.JobSchedule) string {
	switch s := schedule.(type) {
	case gocron.CronJobSchedule:
		return s.Crontab
	case gocron.DurationJobSchedule:
		return fmt.Sprintf("every %v", s.Duration)
	case gocron.DurationRandomJobSchedule:
		return fmt.Sprintf("every %v to %v", s.Min, s.Max)
	case gocron.DailyJobSchedule:
		return fmt.Sprintf("every %d days at %v", s.Interval, hoursOf(s.AtTimes))
	case gocron.WeeklyJobSchedule:
		return fmt.Sprintf("every %d weeks on %v at %v", s.Interval, s.DaysOfWeek, hoursOf(s.AtTimes))
	case gocron.MonthlyJobSchedule:
		return fmt.Sprintf("every %d months on %v %v at %v", s.Interval, s.Days, s.DaysFromEnd, hoursOf(s.AtTimes))
	case gocron.OneTimeJobSchedule:
		times := make([]string, len(s.StartAt))
		for i, at := range s.StartAt {
			times[i] = at.UTC().Format(time.RFC3339)
		}
		return fmt.Sprintf("at %v", times)
	}
	return fmt.Sprintf("%T", schedule)
}
