package gocronx

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"github.com/tenure-dev/tenure/internal/timetable"
)

// Version is the version of gocron whose private fields are known.
const Version = "v2.22.0"

// jobFields are the private fields of a job that are read. The tags are their paths.
type jobFields struct {
	Function          any                              `gocron:"function"`
	Parameters        []any                            `gocron:"parameters"`
	Context           context.Context                  `gocron:"parentCtx"`
	Start             time.Time                        `gocron:"startTime"`
	Stop              time.Time                        `gocron:"stopTime"`
	StartImmediately  bool                             `gocron:"startImmediately"`
	FromCompletion    bool                             `gocron:"intervalFromCompletion"`
	Limit             uint                             `gocron:"limitRunsTo.limit"`
	Singleton         bool                             `gocron:"singletonMode"`
	SingletonMode     gocron.LimitMode                 `gocron:"singletonLimitMode"`
	Cron              gocron.Cron                      `gocron:"cron"`
	DaylightSavings   gocron.DaylightSavingsTimePolicy `gocron:"daylightSavingsTimePolicy"`
	Locker            gocron.Locker                    `gocron:"locker"`
	WithoutAnyLocking bool                             `gocron:"disabledLocker"`
}

// schedulerFields are the private fields of a scheduler that are read.
type schedulerFields struct {
	Elector     gocron.Elector          `gocron:"exec.elector"`
	Locker      gocron.Locker           `gocron:"exec.locker"`
	Clock       clockwork.Clock         `gocron:"exec.clock"`
	StopTimeout time.Duration           `gocron:"exec.stopTimeout"`
	Limit       uint                    `gocron:"exec.limitMode.limit"`
	LimitMode   gocron.LimitMode        `gocron:"exec.limitMode.mode"`
	Location    *time.Location          `gocron:"location"`
	Global      []gocron.JobOption      `gocron:"globalJobOptions"`
	Monitor     gocron.SchedulerMonitor `gocron:"schedulerMonitor"`
}

var (
	gocronJob       = reflect.TypeFor[gocron.JobOption]().In(0).Elem()
	gocronScheduler = reflect.TypeFor[gocron.SchedulerOption]().In(0).Elem()

	ofJobs       = sync.OnceValues(func() (layout, error) { return newLayout(gocronJob, reflect.TypeFor[jobFields]()) })
	ofSchedulers = sync.OnceValues(func() (layout, error) { return newLayout(gocronScheduler, reflect.TypeFor[schedulerFields]()) })
)

// Check returns an error if this version of gocron does not have the private fields that are read.
// Then nothing else of the package works.
func Check() error {
	if _, err := ofJobs(); err != nil {
		return err
	}
	_, err := ofSchedulers()
	return err
}

// layout has, for each field of one of our structs, the path to its source in a struct of gocron's.
// Paths go through pointers.
type layout [][]int

// newLayout finds the fields of our struct in gocron's struct in.
func newLayout(in, fields reflect.Type) (l layout, err error) {
	var missing []string
	for i := range fields.NumField() {
		f := fields.Field(i)
		names := f.Tag.Get("gocron")
		path, found := pathOf(in, names)
		if found != f.Type {
			missing = append(missing, fmt.Sprintf("%v.%s of type %v", in, names, f.Type))
		}
		l = append(l, path)
	}
	if len(missing) > 0 {
		return nil, &timetable.OptionError{Option: "gocron", Reason: fmt.Sprintf("this version of gocron has no %s, so that it cannot be read what jobs it was asked for: "+
			"use gocron %s (go get github.com/go-co-op/gocron/v2@%s), or a Tenure that knows yours", strings.Join(missing, ", no "), Version, Version)}
	}
	return l, nil
}

// pathOf follows names, and returns the path and the type of the last field; a nil type if there is
// none.
func pathOf(in reflect.Type, names string) (path []int, at reflect.Type) {
	for name := range strings.SplitSeq(names, ".") {
		if in.Kind() == reflect.Pointer {
			in = in.Elem()
		}
		if in.Kind() != reflect.Struct {
			return nil, nil
		}
		f, found := in.FieldByName(name)
		if !found || len(f.Index) != 1 {
			return nil, nil
		}
		path, in = append(path, f.Index[0]), f.Type
	}
	return path, in
}

// read copies the fields of a struct of gocron's into one of ours. Fields behind a nil pointer keep
// their values.
func (l layout) read(from, into reflect.Value) {
	for i, path := range l {
		at := from
		for _, n := range path {
			if at = reflect.Indirect(at); !at.IsValid() {
				break
			}
			at = at.Field(n)
		}
		if at.IsValid() {
			into.Field(i).Set(reflect.NewAt(at.Type(), at.Addr().UnsafePointer()).Elem()) // unexported, too
		}
	}
}

// readJob returns the fields of a job. Check must have returned nil.
func readJob(job unsafe.Pointer) (f jobFields) {
	l, _ := ofJobs()
	l.read(reflect.NewAt(gocronJob, job), reflect.ValueOf(&f).Elem())
	return f
}
