package gocronx

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"runtime/debug"
)

// ErrGoexit is the error of a task that called runtime.Goexit.
var ErrGoexit = errors.New("scheduler: the task called runtime.Goexit")

// Task is the user's function with its parameters, as given to gocron.NewTask.
type Task struct {
	function     reflect.Value
	parameters   []reflect.Value
	takesContext bool            // as its first parameter, which is not in parameters
	context      context.Context // the user's own; may be nil
}

var contextType = reflect.TypeFor[context.Context]()

// newTask makes a Task of a function and parameters that gocron has checked.
func newTask(function any, parameters []any) *Task {
	f := reflect.ValueOf(function)
	for f.Kind() == reflect.Pointer {
		f = f.Elem()
	}
	t := &Task{function: f, takesContext: f.Type().NumIn() > 0 && f.Type().In(0) == contextType}
	if t.takesContext && len(parameters) > 0 {
		if t.context, _ = parameters[0].(context.Context); t.context != nil {
			parameters = parameters[1:]
		}
	}
	for _, p := range parameters {
		t.parameters = append(t.parameters, reflect.ValueOf(p))
	}
	return t
}

// Call calls the function on a goroutine of its own, because gocron's has more to do. It returns
// the first error among the results, as gocron does, that of panicked if the function panics, and
// ErrGoexit if it calls runtime.Goexit. A function that takes a context gets ctx. If the user gave
// it a context, it gets one that has the values of both and ends with either. Call does nothing for
// a nil function.
func (t *Task) Call(ctx context.Context, panicked func(value any, stack []byte) error) error {
	if t.function.IsNil() {
		return nil
	}
	if t.context != nil {
		merged, end := EndWith(Merge(t.context, ctx), ctx)
		defer end(context.Canceled)
		ctx = merged
	}
	err := ErrGoexit
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				err = panicked(p, debug.Stack())
			}
		}()
		err = t.call(ctx)
	}()
	<-done
	return err
}

func (t *Task) call(ctx context.Context) error {
	in := t.parameters
	if t.takesContext {
		in = append([]reflect.Value{reflect.ValueOf(ctx)}, in...)
	}
	for _, out := range t.function.Call(in) {
		if err, ok := out.Interface().(error); ok {
			return err
		}
	}
	return nil
}

// merged is a context that also has the values of another.
type merged struct {
	context.Context
	also context.Context
}

func (m *merged) Value(key any) any {
	return cmp.Or(m.Context.Value(key), m.also.Value(key))
}

// Merge returns a context that has the values of own and run, own's first. It ends with own only;
// see EndWith.
func Merge(own, run context.Context) context.Context { return &merged{Context: own, also: run} }

// EndWith returns a context that also ends when one of the others ends, with the cause of the first
// that ends. The caller calls end.
func EndWith(ctx context.Context, others ...context.Context) (_ context.Context, end context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var stops []func() bool
	for _, other := range others {
		ends := func() { cancel(context.Cause(other)) }
		stops = append(stops, context.AfterFunc(other, ends))
		if other.Err() != nil {
			ends() // at once, not only when AfterFunc's goroutine runs
		}
	}
	return ctx, func(why error) {
		for _, stop := range stops {
			stop()
		}
		cancel(why)
	}
}
