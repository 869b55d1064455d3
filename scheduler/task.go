package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/tenure-dev/tenure/redlock"
)

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// NewTask is gocron.NewTask for the jobs of a Scheduler: a function and its parameters. If the
// function's first parameter is a context, it gets one that ends, with the cause, when the job's
// lease or the leadership is lost, when the job is removed, and when the Scheduler stops;
// RunFromContext tells which run it is for. If parameters begin with a context of your own, the
// function gets one with its values that ends with either.
//
// An error that the function returns is logged as a warning with the job and the tick, at debug
// level if it is only that its context has ended, and goes to gocron's listeners and monitors. A
// panic is logged as an error with its stack and does not end the process: gocron recovers it, and
// tells AfterJobRunsWithPanic and AfterJobRunsWithError as ever, on another goroutine than the
// function's, whose stack is in the log and in the PanicError. A run that panicked is not complete;
// see WithDelivery. A panic of a listener, a monitor or a tracer is another matter and
// ends the process.
//
// Nothing is done for a nil function. What is wrong with the function or its parameters is reported
// by NewJob. In a bare gocron scheduler such a task works as gocron's own: nothing is logged, and a
// panic ends the process unless the job has gocron.AfterJobRunsWithPanic. Give such a job a name,
// because the one that gocron takes from the function is the same for all.
func NewTask(function any, parameters ...any) gocron.Task {
	if gocronRefuses(gocron.NewTask(function, parameters...)) != nil {
		return gocron.NewTask(function, parameters...)
	}
	f := reflect.ValueOf(function)
	for f.Kind() == reflect.Pointer {
		f = f.Elem()
	}
	t := &task{function: f, parameters: parameters}
	if f.Type().NumIn() > 0 && f.Type().In(0) == contextType {
		t.takesContext = true
		if len(parameters) > 0 {
			if t.context, _ = parameters[0].(context.Context); t.context != nil {
				t.parameters = parameters[1:]
			}
		}
	}
	return gocron.NewTask(t.run)
}

// task is a function that gocron is not handed directly.
type task struct {
	function     reflect.Value
	parameters   []any
	takesContext bool
	context      context.Context // the caller's own; may be nil
}

// run is what gocron calls, with the job's context.
func (t *task) run(ctx context.Context) error {
	j := jobFrom(ctx)
	if j == nil {
		return t.call(ctx) // a bare gocron scheduler
	}
	defer j.s.tasks.begin(j.name)()
	r := j.begun.take(anyRun)
	call := func(ctx context.Context) error { return t.callFor(ctx, j, r) }
	if r != nil {
		return r.call(ctx, call)
	}
	return call(ctx) // gocron.WithDisabledDistributedJobLocker
}

// callFor calls the function for a run of a job, and logs how it failed. The run is nil where the
// job has no lease.
func (t *task) callFor(ctx context.Context, j *job, r *runLock) error {
	attrs := []any{"job", j.name}
	if r, ok := RunFromContext(ctx); ok {
		attrs = append(attrs, "tick", r.Tick, "attempt", r.Attempt, "fencing_token", r.FencingToken())
	}
	panicked, err := apart(func() error { return t.call(ctx) })
	if panicked != nil {
		panicked.Job = j.name
		r.failed(panicked)
		panicked.log(ctx, j.s.cfg.logger, "scheduler: the task panicked", attrs...)
		panic(panicked.Value) // gocron recovers it: see recovering
	}
	if err != nil {
		level := slog.LevelWarn
		if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
			level = slog.LevelDebug // it was told to end
		}
		j.s.cfg.logger.Log(ctx, level, "scheduler: the task failed", append(attrs, "error.type", redlock.ErrorType(err), "error", err)...)
	}
	return err
}

// errGoexit is the error of a task that ended its goroutine.
var errGoexit = errors.New("scheduler: the task called runtime.Goexit")

// apart calls f on a goroutine of its own: f may end that with runtime.Goexit, as FailNow of
// package testing does, and gocron's has more to do.
func apart(f func() error) (panicked *PanicError, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				panicked = &PanicError{Value: p, Stack: debug.Stack()}
			}
		}()
		err = errGoexit
		err = f()
	}()
	<-done
	return panicked, err
}

// recovering is a listener with which gocron recovers the panics of a job's task. Without any it
// lets them end the process. It goes before the options of the user, whose own listener takes its
// place.
func recovering() gocron.JobOption {
	return gocron.WithEventListeners(gocron.AfterJobRunsWithPanic(func(uuid.UUID, string, any) {}))
}

// tasks counts the tasks that are at work, by job.
type tasks struct {
	mu   sync.Mutex
	jobs map[string]int // guarded by mu
}

// begin counts a task until end is called.
func (t *tasks) begin(job string) (end func()) {
	t.add(job, 1)
	return func() { t.add(job, -1) }
}

func (t *tasks) add(job string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.jobs == nil {
		t.jobs = make(map[string]int)
	}
	if t.jobs[job] += n; t.jobs[job] == 0 {
		delete(t.jobs, job)
	}
}

// annotate adds the jobs whose tasks are still at work to gocron's error that it has waited long
// enough for them.
func (t *tasks) annotate(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil || len(t.jobs) == 0 {
		return err
	}
	return fmt.Errorf("scheduler: still running: %q: %w", slices.Sorted(maps.Keys(t.jobs)), err)
}

// call calls the function and returns the first error among what it returns, as gocron does.
func (t *task) call(ctx context.Context) error {
	if t.function.IsNil() {
		return nil
	}
	if t.context != nil {
		merged, cancel := merge(t.context, ctx)
		defer cancel()
		ctx = merged
	}
	var in []reflect.Value
	if t.takesContext {
		in = append(in, reflect.ValueOf(ctx))
	}
	for _, p := range t.parameters {
		in = append(in, reflect.ValueOf(p))
	}
	return firstError(t.function.Call(in))
}

// firstError returns the first error among what a function returned.
func firstError(results []reflect.Value) error {
	for _, out := range results {
		if out.Type().Implements(errorType) || out.Kind() == reflect.Interface {
			if err, ok := out.Interface().(error); ok && err != nil {
				return err
			}
		}
	}
	return nil
}

// merged is a context with the values of two.
type merged struct {
	context.Context
	also context.Context
}

func (m *merged) Value(key any) any {
	if v := m.Context.Value(key); v != nil {
		return v
	}
	return m.also.Value(key)
}

// merge returns a context that ends with either.
func merge(own, run context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(&merged{Context: own, also: run})
	stop := context.AfterFunc(run, func() { cancel(context.Cause(run)) })
	return ctx, func() { stop(); cancel(context.Canceled) }
}
