package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/tenure-dev/tenure/internal/timetable"
)

// OptionError reports an option or an argument that cannot be used, and the bound that it breaks.
// Option is the name as written in code, such as "WithTTL". Reason says what is wrong with the
// value and what would be right. Err is the error of redlock or gocron if that refused the value,
// and may be nil. Unwrap returns Err.
type OptionError = timetable.OptionError

// checkContext refuses a nil context, which would panic later.
func checkContext(ctx context.Context) error {
	return timetable.Refuse(ctx == nil, "ctx", "is nil: use context.Background() where there is no other")
}

// PanicError reports a panic. Locker.Lock and Lock.Unlock return one for a panic in a tracer or a
// log handler, for example; gocron would not recover it, and it would end the process. A panic of a
// Scheduler's task is reported by one in the log and to a tracer.
type PanicError struct {
	Job   string
	Value any    // the value that was passed to panic
	Stack []byte // of the goroutine that panicked
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("scheduler: job %q: panic: %v", e.Job, e.Value)
}

// Unwrap returns the value of the panic if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ErrorType returns the stable value "panic" for the error.type attribute of traces and metrics.
func (e *PanicError) ErrorType() string { return "panic" }

// recovered turns the value of a panic into a *PanicError and logs it. The deferred function that
// recovered the value must call it, while the stack is still there.
func recovered(ctx context.Context, logger *slog.Logger, job string, value any) *PanicError {
	err := &PanicError{Job: job, Value: value, Stack: debug.Stack()}
	err.log(ctx, logger, "scheduler: panic", "job", job)
	return err
}

// log logs the panic. It recovers a panic of the logger, which may be the cause of the first one.
func (e *PanicError) log(ctx context.Context, logger *slog.Logger, text string, attrs ...any) {
	defer func() { _ = recover() }()
	logger.ErrorContext(ctx, text, append(attrs, "error.type", e.ErrorType(), "error", e, "stack", string(e.Stack))...)
}
