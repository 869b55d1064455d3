package gocronx

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
)

// Version is the version of gocron whose private fields are known.
const Version = "v2.22.0"

// jobFields are the private fields of a job, by their paths.
type jobFields struct {
	function          any                              `gocron:"function"`
	parameters        []any                            `gocron:"parameters"`
	context           context.Context                  `gocron:"parentCtx"`
	start             time.Time                        `gocron:"startTime"`
	stop              time.Time                        `gocron:"stopTime"`
	startImmediately  bool                             `gocron:"startImmediately"`
	fromCompletion    bool                             `gocron:"intervalFromCompletion"`
	limit             uint                             `gocron:"limitRunsTo.limit"`
	singleton         bool                             `gocron:"singletonMode"`
	singletonMode     gocron.LimitMode                 `gocron:"singletonLimitMode"`
	cron              gocron.Cron                      `gocron:"cron"`
	daylightSavings   gocron.DaylightSavingsTimePolicy `gocron:"daylightSavingsTimePolicy"`
	locker            gocron.Locker                    `gocron:"locker"`
	withoutAnyLocking bool                             `gocron:"disabledLocker"`
}

// schedulerFields are those of a scheduler.
type schedulerFields struct {
	elector     gocron.Elector          `gocron:"exec.elector"`
	locker      gocron.Locker           `gocron:"exec.locker"`
	clock       clockwork.Clock         `gocron:"exec.clock"`
	stopTimeout time.Duration           `gocron:"exec.stopTimeout"`
	limit       uint                    `gocron:"exec.limitMode.limit"`
	limitMode   gocron.LimitMode        `gocron:"exec.limitMode.mode"`
	location    *time.Location          `gocron:"location"`
	global      []gocron.JobOption      `gocron:"globalJobOptions"`
	monitor     gocron.SchedulerMonitor `gocron:"schedulerMonitor"`
}

var (
	gocronJob       = reflect.TypeFor[gocron.JobOption]().In(0).Elem()
	gocronScheduler = reflect.TypeFor[gocron.SchedulerOption]().In(0).Elem()

	ofJobs       = sync.OnceValues(func() (layout, error) { return newLayout(gocronJob, reflect.TypeFor[jobFields]()) })
	ofSchedulers = sync.OnceValues(func() (layout, error) { return newLayout(gocronScheduler, reflect.TypeFor[schedulerFields]()) })
)

// Check returns an error if this version of gocron does not have the private fields that are read.
// Nothing else of the package works then.
func Check() error {
	if _, err := ofJobs(); err != nil {
		return err
	}
	_, err := ofSchedulers()
	return err
}

// layout is where the fields of a struct are in one of gocron's.
type layout []place

// place is that of one field. Of several offsets each but the last leads to a pointer.
type place struct {
	offsets []uintptr
	into    uintptr
	of      reflect.Type
}

// newLayout finds the fields of a struct in one of gocron's.
func newLayout(in, fields reflect.Type) (layout, error) {
	var l layout
	var missing []string
	for i := range fields.NumField() {
		f := fields.Field(i)
		path := f.Tag.Get("gocron")
		offsets, found := offsetsOf(in, path)
		if found != f.Type {
			missing = append(missing, fmt.Sprintf("%v.%s of type %v", in, path, f.Type))
		}
		l = append(l, place{offsets, f.Offset, f.Type})
	}
	if len(missing) > 0 {
		return nil, &Error{Option: "gocron", Reason: fmt.Sprintf("this version of gocron has no %s, so that it cannot be read what jobs it was asked for: "+
			"use gocron %s (go get github.com/go-co-op/gocron/v2@%s), or a Tenure that knows yours", strings.Join(missing, ", no "), Version, Version)}
	}
	return slices.Clip(l), nil
}

// offsetsOf follows a path, and returns the type of the field at its end; nil if there is none.
func offsetsOf(in reflect.Type, path string) ([]uintptr, reflect.Type) {
	offsets := []uintptr{0}
	for name := range strings.SplitSeq(path, ".") {
		if in.Kind() == reflect.Pointer {
			in, offsets = in.Elem(), append(offsets, 0)
		}
		if in.Kind() != reflect.Struct {
			return nil, nil
		}
		f, found := in.FieldByName(name)
		if !found || len(f.Index) != 1 {
			return nil, nil
		}
		offsets[len(offsets)-1] += f.Offset
		in = f.Type
	}
	return offsets, in
}

// read copies the fields of a struct of gocron's, at from, into one of ours. What is behind a nil
// pointer is left alone.
func (l layout) read(from, into unsafe.Pointer) {
	for _, p := range l {
		at := unsafe.Add(from, p.offsets[0])
		for _, offset := range p.offsets[1:] {
			if at = *(*unsafe.Pointer)(at); at == nil {
				break
			}
			at = unsafe.Add(at, offset)
		}
		if at != nil {
			reflect.NewAt(p.of, unsafe.Add(into, p.into)).Elem().Set(reflect.NewAt(p.of, at).Elem())
		}
	}
}

// readJob returns the fields of a job. Check has returned nil.
func readJob(job unsafe.Pointer) (f jobFields) {
	l, _ := ofJobs()
	l.read(job, unsafe.Pointer(&f))
	return f
}

// Error is what is wrong with an option, a definition or a task.
type Error struct {
	Option string
	Reason string
	Err    error // gocron's own; may be nil
}

func (e *Error) Error() string { return fmt.Sprintf("scheduler: %s: %s", e.Option, e.Reason) }

// Unwrap returns what gocron said.
func (e *Error) Unwrap() error { return e.Err }
