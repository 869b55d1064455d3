package scheduler

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

// perform has gocron call the task at a time, and returns when gocron is done with the run. The
// task is told to end when ctx ends. gocron is asked at once, and waits for the time within its
// Lock, so that little is left to do at that time. An error means that the task was not called.
func (r *run) perform(ctx context.Context, at time.Time) error {
	due := r.public().Due
	ready := func() error {
		err := r.await(ctx, at)
		if err == nil {
			return nil
		}
		e := newSkipError(r.job.name, due, err)
		e.Pending = r.order == ""
		return e
	}
	asks := ctx
	if r.order != "" { // a listener may wait for the order's run, and gocron for the listener
		var cancel context.CancelFunc
		asks, cancel = context.WithTimeoutCause(ctx, tryTimeout, redlock.ErrTimeout)
		defer cancel()
	}
	err := r.job.Run(asks, due, ready, func(gocron context.Context) error { return r.attempts(ctx, gocron) })
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.state == waiting { // gocron has begun the run
		err = cmp.Or[error](r.err, &SkipError{Job: r.job.name, Tick: due, Count: 1, Reason: SkipRefused, Pending: true})
	}
	return err
}

// attempts calls the task, and calls it again if it fails and may be retried. gocron calls
// attempts, and gets its result.
func (r *run) attempts(ending, gocron context.Context) error {
	ctx, stop := gocronx.EndWith(gocronx.Merge(ending, gocron), gocron)
	defer stop(context.Canceled)
	err := r.mayBegin(ctx)
	r.mu.Lock()
	if r.err, r.stop = err, stop; err == nil {
		r.state, r.began = working, time.Now()
		r.err = &PanicError{Job: r.job.name, Value: "in a tracer"} // unless attempts reaches its end
	}
	r.mu.Unlock()
	if err != nil {
		return err
	}
	r.job.s.decided(r, true)
	if r.begins != nil {
		r.begins()
	}
	retries := r.job.cfg.retry + 1 - r.record().Run.Attempt // attempts of replicas that were killed count
	for pause := r.job.cfg.backoff; ; retries, pause = retries-1, max(pause, min(2*pause, time.Minute)) {
		err = r.attempt(ctx)
		if err == nil || retries <= 0 || clock.Sleep(ctx, pause) != nil || r.write(ctx, joblog.Retry) != nil || r.over(ctx) != nil { // if the count cannot be written
			break
		}
	}
	r.mu.Lock()
	r.state, r.took, r.err, r.told = ended, time.Since(r.began), err, r.over(ctx) != nil
	r.mu.Unlock()
	if p, ok := err.(*PanicError); ok {
		panic(p.Value) // only by a panic does gocron hear of one
	}
	return err
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
	err = r.job.Definition.Task.Call(ctx, func(value any, stack []byte) error { return &PanicError{r.job.name, value, stack} })
	is := call{began, time.Since(began), err}
	r.mu.Lock()
	r.calls = append(r.calls, is)
	r.mu.Unlock()
	if t.RunEnd != nil {
		t.RunEnd(ctx, RunEndTrace{Run: of, Duration: is.took, Err: err})
	}
	r.log(ctx, of, err)
	return err
}

// log logs how a call of the task failed, which gocron does not. It recovers panics of the error's
// methods, such as those of a nil pointer.
func (r *run) log(ctx context.Context, of Run, err error) {
	if err == nil {
		return
	}
	defer func() { _ = recover() }()
	attrs := r.attrs(of)
	if p, ok := err.(*PanicError); ok {
		p.log(ctx, r.job.s.cfg.logger, "scheduler: the task panicked", attrs...)
		return
	}
	level := slog.LevelWarn
	if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
		level = slog.LevelDebug // the task was told to end
	}
	r.job.s.cfg.logger.Log(ctx, level, "scheduler: the task failed", append(attrs, "error.type", redlock.ErrorType(err), "error", err)...)
}
