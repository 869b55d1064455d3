package gocronx

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
)

// ErrGoexit is the error of a task that ended its goroutine.
var ErrGoexit = errors.New("scheduler: the task called runtime.Goexit")

// Panic is the error of a task that panicked.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("scheduler: the task panicked: %v", p.Value) }

// Task is the user's function with its parameters, as given to gocron.NewTask.
type Task struct {
	function     reflect.Value
	parameters   []reflect.Value
	takesContext bool            // as its first parameter, before parameters
	context      context.Context // the user's own; may be nil
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

// newTask makes one of what gocron has checked.
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

// Call calls the function, and returns the first error among what it returns, as gocron does; a
// *Panic if it panics, and ErrGoexit if it ends its goroutine. That is one of its own: gocron's has
// more to do. A function that takes a context gets ctx; if the user gave it one, a context with the
// values of both that ends with either. Nothing is done for a nil function.
func (t *Task) Call(ctx context.Context) error {
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
				err = &Panic{Value: p, Stack: debug.Stack()}
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

// Merge returns a context that has the values of both and ends with the first.
func Merge(own, run context.Context) context.Context { return &merged{Context: own, also: run} }

// EndWith returns a context that ends with others too, with the cause of the first that ends. end
// is to be called.
func EndWith(ctx context.Context, others ...context.Context) (_ context.Context, end context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var stops []func() bool
	for _, other := range others {
		ends := func() { cancel(context.Cause(other)) }
		stops = append(stops, context.AfterFunc(other, ends))
		if other.Err() != nil {
			ends() // at once, and not a moment later
		}
	}
	return ctx, func(why error) {
		for _, stop := range stops {
			stop()
		}
		cancel(why)
	}
}
