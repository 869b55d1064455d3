package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

// perform has gocron call the task, and returns when gocron has done with it. An error says that
// the task was not called.
func (r *run) perform(ctx context.Context) error {
	due := r.public().Due
	err := r.job.gocron.Run(ctx, due, func(ctx context.Context) error { return r.attempts(ctx) })
	switch {
	case err != nil:
		return err
	case r.is(waiting):
		if err := r.refusal(); err != nil {
			return err
		}
		return &SkipError{Job: r.job.name, Tick: due, Count: 1, Reason: SkipRefused, Pending: true}
	}
	return nil
}

func (r *run) is(s runState) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state == s
}

// refusal is why a task was not called that gocron has begun.
func (r *run) refusal() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// attempts calls the task, and again if it fails and may be retried. It is called by gocron.
func (r *run) attempts(ctx context.Context) error {
	ctx, end := r.context(ctx)
	defer end()
	if err := r.mayBegin(ctx); err != nil {
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
		return err
	}
	r.called()
	pause := r.job.cfg.backoff
	for retries := r.job.cfg.retry; ; retries-- {
		err := r.attempt(ctx)
		if err == nil || retries == 0 || ctx.Err() != nil {
			return r.returned(ctx, err)
		}
		if sleep(ctx, pause) != nil {
			return r.returned(ctx, err)
		}
		pause = min(2*pause, time.Minute)
		if r.write(ctx, joblog.Retry) != nil {
			return r.returned(ctx, err) // it would count anew
		}
	}
}

// attempt calls the task once.
func (r *run) attempt(ctx context.Context) (err error) {
	of, t := r.public(), r.job.s.cfg.tracer
	if r.lease != nil {
		ctx = context.WithValue(ctx, runKey{}, of)
	}
	if t.RunStart != nil {
		data := RunStartTrace{Run: of, Term: r.job.s.leader.term()}
		if !of.Due.IsZero() {
			data.Lateness = r.job.s.now().Sub(of.Due)
		}
		ctx = t.RunStart(ctx, data)
	}
	if t.TraceID != nil {
		id := t.TraceID(ctx)
		r.mu.Lock()
		r.trace = id
		r.mu.Unlock()
	}
	began := time.Now()
	err = r.job.gocron.Definition.Task.Call(ctx)
	if p, ok := err.(*gocronx.Panic); ok { // errors.As would call methods of the task's error, which may panic
		err = &PanicError{Job: r.job.name, Value: p.Value, Stack: p.Stack}
	}
	if t.RunEnd != nil {
		t.RunEnd(ctx, RunEndTrace{Run: of, Duration: time.Since(began), Err: err})
	}
	r.log(ctx, of, err)
	return err
}

// log says how a call of the task failed, which gocron does not. It survives methods of the error
// that panic, as those of a nil pointer do.
func (r *run) log(ctx context.Context, of Run, err error) {
	if err == nil {
		return
	}
	defer func() { _ = recover() }()
	attrs := []any{"job", of.Job}
	if r.lease != nil {
		attrs = append(attrs, "tick", of.Due, "attempt", of.Attempt, "fencing_token", of.FencingToken())
	}
	if p, ok := err.(*PanicError); ok {
		p.log(ctx, r.job.s.cfg.logger, "scheduler: the task panicked", attrs...)
		return
	}
	level := slog.LevelWarn
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		level = slog.LevelDebug // it was told to end
	}
	r.job.s.cfg.logger.Log(ctx, level, "scheduler: the task failed", append(attrs, "error.type", redlock.ErrorType(err), "error", err)...)
}

// called notes that the task is called.
func (r *run) called() {
	r.mu.Lock()
	r.state, r.began = working, time.Now()
	r.mu.Unlock()
	r.job.s.teller.begun(r)
	if r.begins != nil {
		r.begins()
	}
}

// returned notes that it has returned, and returns what gocron is to hear. gocron hears of a panic
// by one.
func (r *run) returned(ctx context.Context, err error) error {
	r.mu.Lock()
	r.state, r.took, r.err, r.told = ended, time.Since(r.began), err, ctx.Err() != nil
	r.mu.Unlock()
	if p, ok := err.(*PanicError); ok {
		panic(p.Value)
	}
	return err
}

// context is the lease's context, with which it has the values of gocron's, and ends also with that
// and the leadership.
func (r *run) context(gocron context.Context) (context.Context, context.CancelFunc) {
	base, end := gocron, func() {}
	if r.lease != nil {
		base, end = gocronx.Merge(r.lease.Context(), gocron)
	}
	ctx, stop := r.job.during(base)
	r.mu.Lock()
	r.stop = stop
	r.mu.Unlock()
	return ctx, func() { stop(context.Canceled); end() }
}
