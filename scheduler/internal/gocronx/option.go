package gocronx

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/internal/timetable"
)

// Option returns an option of NewJob that gocron does not have. A Reader finds its value and puts
// it into Definition.Own. name is the name of the function that the user calls. gocron itself
// refuses the option, with an error that says what to do.
func Option(name string, value any) gocron.JobOption {
	return like(gocron.WithName("like"), func(job unsafe.Pointer) error {
		if Check() == nil {
			if c, is := readJob(job).Context.(*collector); is {
				c.values = append(c.values, value)
				return nil
			}
		}
		return &timetable.OptionError{Option: name, Reason: "gocron alone cannot do it: make the scheduler with scheduler.New in place of gocron.NewScheduler"}
	})
}

// like makes an option. The type of the option's argument has no name outside of gocron, so it is
// inferred from another option.
func like[J any, O ~func(*J, time.Time) error](_ O, apply func(job unsafe.Pointer) error) O {
	return func(job *J, _ time.Time) error { return apply(unsafe.Pointer(job)) }
}

// collector is the parent context of a job, into which options of our own put their values.
type collector struct {
	context.Context
	values []any
}

// sorted is the options of a job, sorted.
type sorted struct {
	gocron []gocron.JobOption // all but our own
	handed []gocron.JobOption // those of gocron that a job which is never due may have
	own    []any
}

// sortOptions applies each option to a job of its own. An error that an option returns is left to
// gocron's NewJob.
func sortOptions(opts []gocron.JobOption) (s sorted, err error) {
	c := &collector{Context: context.Background()}
	for i, o := range opts {
		if o == nil {
			return s, &timetable.OptionError{Option: "gocron.JobOption", Reason: fmt.Sprintf("option %d is nil", i)}
		}
		before := len(c.values)
		var f jobFields
		if p := panicOf(func() { f = alone(o, gocron.WithContext(c)) }); p != nil {
			return s, &timetable.OptionError{Option: "gocron.JobOption", Reason: fmt.Sprintf("option %d panics: %v", i, p)}
		}
		if len(c.values) > before {
			continue
		}
		s.gocron = append(s.gocron, o)
		if !f.timed() {
			s.handed = append(s.handed, o)
		}
	}
	s.own = c.values
	return s, nil
}

// alone returns the fields of a job that has only one option, and a context.
func alone[J any, O ~func(*J, time.Time) error](o, context O) jobFields {
	job := new(J)
	_ = context(job, epoch)
	_ = o(job, epoch)
	return readJob(unsafe.Pointer(job))
}

// timed reports whether an option asks gocron for something that it must not do by itself with a
// job that is never due. Cron and Locker do not count: the Executor sets its own.
func (f *jobFields) timed() bool {
	return !f.Start.IsZero() || !f.Stop.IsZero() || f.StartImmediately || f.FromCompletion || f.Limit > 0 || f.Singleton || f.WithoutAnyLocking
}

// panicOf calls f and returns the value that it panics with.
func panicOf(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}
