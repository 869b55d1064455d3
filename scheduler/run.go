package scheduler

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/redlock"
)

var _ gocron.Lock = (*run)(nil)

// run is a run of a job on this replica, from the grant of its lease to its release. It is the
// gocron.Lock that gocron unlocks.
type run struct {
	Run
	job   *job
	taken chan struct{} // of one that gocron was offered: closed when Lock hands it out

	mu    sync.Mutex
	state runState // guarded by mu
	once  sync.Once
}

type runState int

const (
	waiting  runState = iota // the task has not begun
	working                  // it has
	returned                 // it has returned
)

func (r *run) set(s runState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = s
}

// Unlock ends the run: its lease is completed if the task has returned, forgone if it was not
// called, and otherwise, after a panic or the loss of the lease, released. gocron calls it with the
// job's context, which may have ended.
func (r *run) Unlock(ctx context.Context) error {
	r.once.Do(func() { r.end(ctx) })
	return nil
}

func (r *run) end(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			_ = recovered(ctx, r.job.s.cfg.logger, r.Job, p)
		}
	}()
	r.job.drop(r)
	r.mu.Lock()
	state := r.state
	r.mu.Unlock()
	var err error
	switch {
	case state == waiting:
		err = r.lease.Forgo(ctx) //mutant:run-that-was-not-called-counts
	case state == working, r.lease.Err() != nil: //mutant:loss-completes
		// It did not return, or was told to end before it was done.
		err = r.lease.Release(ctx) //mutant:panic-completes
		r.job.chase.afterCut(r)
	default:
		err = r.lease.Complete(ctx)
	}
	if err == nil {
		return
	}
	text := "scheduler: the run is over and its lease could not be released everywhere: it runs out by itself"
	if errors.Is(err, redlock.ErrLost) {
		text = "scheduler: the lease was lost during the run: another replica may have begun the next one"
	}
	r.job.s.cfg.logger.WarnContext(ctx, text, "job", r.Job, "tick", r.Tick, "fencing_token", r.FencingToken(),
		"error.type", redlock.ErrorType(err), "error", err)
}

// run calls the task for the run that Lock has begun.
func (j *job) run(ctx context.Context, call func(context.Context) error) (err error) {
	r := j.started.take(func(*run) bool { return true })
	if r == nil {
		return call(ctx) // gocron.WithDisabledDistributedJobLocker
	}
	r.set(working)
	ctx, cancel := r.context(ctx)
	defer cancel()
	tracer := j.s.cfg.tracer.run
	if tracer == nil {
		err = call(ctx)
		r.set(returned)
		return err
	}
	data := TraceRunStartData{Run: r.Run, Term: j.s.leader.term()}
	if !r.Tick.IsZero() {
		data.Delay = j.s.cfg.clock.Since(r.Tick)
	}
	ctx = tracer.TraceRunStart(ctx, data)
	began := time.Now()
	panicked := true
	defer func() {
		tracer.TraceRunEnd(ctx, TraceRunEndData{Run: r.Run, Duration: time.Since(began), Err: err, Panicked: panicked})
	}()
	err = call(ctx)
	panicked = false
	r.set(returned)
	return err
}

// context is the lease's context, with which it has the values of the job's, and ends also with the
// job's context and the leadership.
func (r *run) context(job context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithValue(r.lease.Context(), runKey{}, r.Run))
	stops := []func() bool{context.AfterFunc(job, func() { cancel(context.Cause(job)) })}
	if term := r.job.s.leader.term(); term != nil { //mutant:task-not-told-of-the-leadership
		stops = append(stops, context.AfterFunc(term.Context(), func() { cancel(context.Cause(term.Context())) }))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(context.Canceled)
	}
}

// runs is a queue of runs.
type runs struct {
	mu   sync.Mutex
	list []*run // guarded by mu
}

func (q *runs) add(r *run) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, r)
}

// take removes the first that fits, or returns nil.
func (q *runs) take(fits func(*run) bool) *run {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.list, fits)
	if i < 0 {
		return nil
	}
	r := q.list[i]
	q.list = slices.Delete(q.list, i, i+1)
	return r
}

// remove removes a run, and reports whether it was there.
func (q *runs) remove(r *run) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.list, r)
	if i < 0 {
		return false
	}
	q.list = slices.Delete(q.list, i, i+1)
	return true
}
