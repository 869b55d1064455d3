package scheduler

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"time"

	"github.com/go-co-op/gocron/v2"
)

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// NewTask is gocron.NewTask for the jobs of a Scheduler: a function and its parameters. If the function's first parameter
// is a context, it gets one that ends, with the cause, when the job's lease or the leadership is lost, when the job is removed,
// and when the Scheduler stops; RunFromContext tells which run it is for. If parameters begin with a context of your own,
// the function gets one with its values that ends with either.
//
// What the function returns and its panics are gocron's affair, as ever, and nothing is done for a nil function. What is wrong with
// the function or its parameters is reported by NewJob. In a bare gocron scheduler such a task works as gocron's own; give the job a
// name, because the one that gocron takes from the function is the same for all.
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
	return j.run(ctx, t.call)
}

// call calls the function and returns the first error among what it returns, as gocron does.
func (t *task) call(ctx context.Context) error {
	if t.function.IsNil() {
		return nil
	}
	kind := t.function.Type()
	in := make([]reflect.Value, 0, kind.NumIn())
	if t.takesContext {
		if t.context != nil {
			merged, cancel := merge(t.context, ctx)
			defer cancel()
			ctx = merged
		}
		in = append(in, reflect.ValueOf(ctx))
	}
	for _, p := range t.parameters {
		in = append(in, reflect.ValueOf(p))
	}
	for _, out := range t.function.Call(in) {
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

// gocronRefuses returns what gocron has against a task. It panics for a nil parameter, and for too few before variadic ones.
func gocronRefuses(t gocron.Task) (err error) {
	probe, err := gocron.NewScheduler()
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil {
			err = &OptionError{Option: "task", Reason: fmt.Sprintf("the parameters do not fit the function, or one is nil: gocron panics: %v", p)}
		}
		_ = probe.Shutdown()
	}()
	_, err = probe.NewJob(gocron.DurationJob(time.Hour), t)
	return err
}

// isOwn reports whether the task was made by NewTask. gocron's tasks are opaque, but for the name of the function in them.
func isOwn(t gocron.Task) bool {
	if t == nil {
		return false
	}
	f := reflect.ValueOf(t()).FieldByName("function")
	if !f.IsValid() || f.Kind() != reflect.Interface || f.Elem().Kind() != reflect.Func {
		return false
	}
	return strings.HasSuffix(runtime.FuncForPC(f.Elem().Pointer()).Name(), "/scheduler.(*task).run-fm")
}
