package scheduler

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/go-co-op/gocron/v2"
)

// gocron's options are functions on types that it does not export, and it has no accessors for what
// they set: Job tells a job's name, tags and schedule, and Scheduler tells nothing. To refuse
// options that mean something else with several replicas, they are applied to a zero value of that
// type, and the private fields below are read, here and nowhere else. Where a later version of
// gocron has renamed one, or an option does not work on a zero value, it cannot be known what was
// asked for: then New and NewJob refuse. TestGocronStillTellsWhatItsOptionsSet says what to do
// then.

// knownGocron is the version of gocron whose fields are known.
const knownGocron = "v2.22.0"

// The fields, by their paths.
const (
	fieldElector       = "exec.elector" // of a scheduler
	fieldLocker        = "exec.locker"
	fieldClock         = "exec.clock"
	fieldStopTimeout   = "exec.stopTimeout"
	fieldLimitMode     = "exec.limitMode"
	fieldLocation      = "location"
	fieldGlobalOptions = "globalJobOptions"
	fieldMonitor       = "schedulerMonitor"

	fieldJobLocker              = "locker" // of a job
	fieldDisabledLocker         = "disabledLocker"
	fieldContext                = "parentCtx"
	fieldLimitedRuns            = "limitRunsTo"
	fieldIntervalFromCompletion = "intervalFromCompletion"
	fieldSingleton              = "singletonMode"
	fieldSingletonLimitMode     = "singletonLimitMode"
	fieldStartImmediately       = "startImmediately"
	fieldStartTime              = "startTime"
	fieldStopTime               = "stopTime"
	fieldDaylightSaving         = "daylightSavingsTimePolicy"
)

var (
	schedulerFields = []string{fieldElector, fieldLocker, fieldClock, fieldStopTimeout, fieldLimitMode, fieldLocation, fieldGlobalOptions, fieldMonitor}
	jobFields       = []string{fieldJobLocker, fieldDisabledLocker, fieldContext, fieldLimitedRuns, fieldIntervalFromCompletion, fieldSingleton,
		fieldSingletonLimitMode, fieldStartImmediately, fieldStartTime, fieldStopTime, fieldDaylightSaving}
)

// settings is what options of gocron set: a struct of gocron's that they were applied to. It has
// all the fields above.
type settings struct{ value reflect.Value }

// schedulerSettings returns what options of gocron.NewScheduler set. Errors are *OptionError.
func schedulerSettings[S any, O ~func(*S) error](opts []O) (settings, error) {
	target := new(S)
	return newSettings(target, schedulerFields, opts, func(o O) { _ = o(target) })
}

// jobSettings returns what options of NewJob set. Errors are *OptionError.
func jobSettings[J any, O ~func(*J, time.Time) error](opts []O, now time.Time) (settings, error) {
	target := new(J)
	return newSettings(target, jobFields, opts, func(o O) { _ = o(target, now) })
}

// newSettings applies options to a struct of gocron's, which is to have the fields. The errors that
// options return are gocron's affair.
func newSettings[O any](target any, fields []string, opts []O, apply func(O)) (settings, error) {
	s := settings{reflect.ValueOf(target).Elem()}
	for i, o := range opts {
		if p := panicOf(func() { apply(o) }); p != nil {
			return s, &OptionError{Option: "gocron", Reason: fmt.Sprintf("option %d panics: %v", i, p)}
		}
	}
	missing := slices.DeleteFunc(slices.Clone(fields), func(field string) bool { return s.get(field).IsValid() })
	if len(opts) > 0 && len(missing) > 0 {
		return s, &OptionError{Option: "gocron", Reason: fmt.Sprintf("this version does not tell %q of its options, so that those which do not fit "+
			"several replicas cannot be refused: use gocron %s (go get github.com/go-co-op/gocron/v2@%s), or a Tenure that knows yours",
			missing, knownGocron, knownGocron)}
	}
	return s, nil
}

// panicOf calls f and returns the value that it panics with. An option may need more than a zero
// value.
func panicOf(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

// get returns a field; the zero Value if it is not there.
func (s settings) get(field string) reflect.Value {
	v := s.value
	for name := range strings.SplitSeq(field, ".") {
		if v = v.FieldByName(name); !v.IsValid() {
			break
		}
	}
	return v
}

// has reports whether a field is not zero.
func (s settings) has(field string) bool {
	v := s.get(field)
	return v.IsValid() && !v.IsZero()
}

// number returns a field that is an integer.
func (s settings) number(field string) int64 {
	v := s.get(field)
	if !v.IsValid() || !v.CanInt() {
		return 0
	}
	return v.Int()
}

// time returns a field that is a time; zero if it is none.
func (s settings) time(field string) time.Time {
	v := s.get(field)
	if !v.IsValid() || v.Type() != reflect.TypeFor[time.Time]() {
		return time.Time{}
	}
	return *(*time.Time)(unsafe.Pointer(v.UnsafeAddr())) // reflect gives no interface to a private field
}

// monitor is gocron.WithSchedulerMonitor, or one that does nothing.
func (s settings) monitor() gocron.SchedulerMonitor {
	v := s.get(fieldMonitor)
	if !v.IsValid() || v.IsZero() || v.Type() != reflect.TypeFor[gocron.SchedulerMonitor]() {
		return noMonitor{}
	}
	return *(*gocron.SchedulerMonitor)(unsafe.Pointer(v.UnsafeAddr()))
}

// refusal is a setting that is not for a Scheduler, and what to do instead.
type refusal struct {
	option string
	field  string
	reason string
}

var schedulerRefusals = []refusal{
	{"gocron.WithDistributedElector", fieldElector, "gocron would not lock any job then: use WithElection"},
	{"gocron.WithDistributedLocker", fieldLocker, "the Scheduler is its own locker: leave it out"},
	{"gocron.WithClock", fieldClock, "ticks are computed too: use WithClock of this package"},
	{"gocron.WithLocation", fieldLocation, "ticks are computed too: use WithLocation of this package"},
	{"gocron.WithStopTimeout", fieldStopTimeout, "leases go by it too: use WithStopTimeout of this package"},
	{"gocron.WithGlobalJobOptions", fieldGlobalOptions, "each job's options are looked at: use WithGlobalJobOptions of this package"},
}

var jobRefusals = []refusal{
	{"gocron.WithDistributedJobLocker", fieldJobLocker, "the Scheduler is its own locker: leave it out, or use a bare gocron scheduler"},
	{"gocron.WithContext", fieldContext, "the Scheduler passes the run by it: give values to WithContext of this package"},
	{"gocron.WithLimitedRuns", fieldLimitedRuns, "each replica would count its own runs: remove the job when the work is done"},
	{"gocron.WithIntervalFromCompletion", fieldIntervalFromCompletion,
		"each replica would count from its own runs: a run is never overlapped by the next as it is"},
}

// check returns an error for the first setting that is refused.
func (s settings) check(refusals []refusal) error {
	for _, r := range refusals {
		if s.has(r.field) {
			return &OptionError{Option: r.option, Reason: r.reason}
		}
	}
	return nil
}

// overlap returns what gocron.WithSingletonMode asks for in the words of WithOverlap: runs exclude
// each other anyway, on all replicas.
func (s settings) overlap() (o Overlap, asked bool) {
	if !s.has(fieldSingleton) {
		return 0, false
	}
	if gocron.LimitMode(s.number(fieldSingletonLimitMode)) == gocron.LimitModeWait {
		return OverlapQueue, true
	}
	return OverlapSkip, true
}

// daylightSaving is gocron.WithDaylightSavingsTimePolicy.
func (s settings) daylightSaving() gocron.DaylightSavingsTimePolicy {
	return gocron.DaylightSavingsTimePolicy(s.number(fieldDaylightSaving))
}

// without leaves out the options that set one of the fields.
func without(opts []gocron.JobOption, now time.Time, fields ...string) []gocron.JobOption {
	var kept []gocron.JobOption
	for _, o := range opts {
		s, _ := jobSettings([]gocron.JobOption{o}, now)
		if !slices.ContainsFunc(fields, s.has) {
			kept = append(kept, o)
		}
	}
	return kept
}

// timeless leaves out the options that name times, which are in the past when missed ticks are
// computed.
func timeless(opts []gocron.JobOption, now time.Time) []gocron.JobOption {
	return without(opts, now, fieldStartTime, fieldStartImmediately, fieldStopTime)
}
