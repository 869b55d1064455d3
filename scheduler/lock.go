package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/redlock"
)

var _ gocron.Lock = (*Lock)(nil)

// Lock is the lease of one run of a job. gocron gets it from Locker.Lock and calls Unlock when the
// job is done. It is safe for concurrent use.
type Lock struct {
	job    string
	lease  *redlock.Lease
	logger *slog.Logger
	// unwatch ends the watch for a loss and returns false if one was seen.
	unwatch func() bool

	once    sync.Once
	outcome error // of the first Unlock
}

func newLock(ctx context.Context, job string, lease *redlock.Lease, logger *slog.Logger) *Lock {
	l := &Lock{job: job, lease: lease, logger: logger}
	l.unwatch = context.AfterFunc(lease.Context(), func() { l.lapsed(context.WithoutCancel(ctx)) })
	return l
}

// Lease returns the lease, for what gocron's interface has no room for: its fencing token, and its
// context, which is cancelled when it is lost. A Locker of your own that wraps this package's can
// take both to the task.
//
// The lease is extended until Unlock. Do not release it yourself while the job runs.
func (l *Lock) Lease() *redlock.Lease { return l.lease }

// Unlock releases the lease, or leaves it to run out at the end of the minimum hold (WithMinHold)
// if that is later. It works with a cancelled ctx, which is what gocron hands it during a shutdown:
// ctx lends its values only. It waits for a quorum of nodes, at most redlock's node timeout.
//
// It may be called any number of times and concurrently; every call returns the same: nil, a
// *redlock.LostError (redlock.ErrLost) if the lease was lost while the job ran, or a
// *redlock.QuorumError (redlock.ErrNoQuorum) if too few nodes confirmed, in which case the lease
// runs out by itself at the end of its TTL at the latest; after a panic below it a *PanicError.
// gocron drops what Unlock returns, so it is logged too.
func (l *Lock) Unlock(ctx context.Context) error {
	l.once.Do(func() { l.outcome = l.unlock(ctx) })
	return l.outcome
}

func (l *Lock) unlock(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = recovered(ctx, l.logger, l.job, p)
		}
	}()
	unreported := l.unwatch()
	if err = l.lease.Release(ctx); err == nil {
		return nil
	}
	err = fmt.Errorf("scheduler: job %q: %w", l.job, err)
	switch {
	case !errors.Is(err, redlock.ErrLost):
		l.warn(ctx, "scheduler: the job is done and its lease could not be released: it runs out by itself", err)
	case unreported:
		l.warn(ctx, "scheduler: the job is done and its lease was lost: another replica may have run the job as well", err)
	}
	return err
}

// lapsed reports a lease that ended before Unlock.
func (l *Lock) lapsed(ctx context.Context) {
	l.warn(ctx, "scheduler: the lease of a running job was lost: another replica may run the job as well", l.lease.Err())
}

func (l *Lock) warn(ctx context.Context, text string, err error) {
	l.logger.WarnContext(ctx, text, "job", l.job, "fencing_token", l.lease.FencingToken(),
		"error.type", redlock.ErrorType(err), "error", err)
}

var _ gocron.Lock = (*runLock)(nil)

// runLock is the gocron.Lock of a Scheduler: a run of a job on this replica, from the grant of its
// lease to its release.
type runLock struct {
	Run
	job   *job
	late  lateTick      // its tick, should it have to be run again; zero for a run that is no tick
	taken chan struct{} // of one that gocron was offered: closed when Lock hands it out

	order string // the order that asked for it; empty for none

	mu        sync.Mutex
	state     runState                // guarded by mu
	began     time.Time               // guarded by mu; when the task was called, or the run was made
	took      time.Duration           // guarded by mu; until the task returned
	err       error                   // guarded by mu; that it returned
	panicked  error                   // guarded by mu; of a task that panicked
	trace     string                  // guarded by mu; see TraceIdentifier
	stop      context.CancelCauseFunc // guarded by mu; ends the task's context
	cancelled bool                    // guarded by mu
	once      sync.Once
}

type runState int

const (
	waiting runState = iota // the task has not begun
	working                 // it has
	ended                   // it has returned
)

// newRunLock makes the lock of a run that begins. The Run has what is neither the job's nor the
// lease's, nor the tick's. late is zero for a run that is no tick.
func newRunLock(j *job, lease *redlock.Lease, late lateTick, r Run) *runLock {
	r.Job, r.Tick, r.lease = j.name, late.at, lease
	return &runLock{Run: r, job: j, late: late, began: time.Now()}
}

// Unlock ends the run: its lease is completed if the task has returned or was cancelled, forgone if
// it was not called, and otherwise, after a panic or the loss of the lease, released. gocron calls
// it with the job's context, which may have ended.
func (r *runLock) Unlock(ctx context.Context) error {
	r.once.Do(func() { r.end(ctx) })
	return nil
}

func (r *runLock) end(ctx context.Context) {
	defer func() {
		if p := recover(); p != nil {
			_ = recovered(ctx, r.job.s.cfg.logger, r.Job, p)
		}
	}()
	r.job.begun.remove(r) // its task may not have been called
	r.job.s.teller.ended(r)
	r.mu.Lock()
	state, cancelled := r.state, r.cancelled
	r.mu.Unlock()
	r.tell(state)
	var err error
	switch {
	case state == waiting:
		r.job.backlog.addRefused(ctx, r.late) // before others may ask for it
		err = r.lease.Abandon(ctx)
	case cancelled:
		err = r.lease.Complete(ctx) // whatever its task did of it, and also if the lease was lost meanwhile
	case state == working, r.lease.Err() != nil:
		// It did not return, or was told to end before it was done.
		err = r.lease.Release(ctx)
		r.job.backlog.addAgain(r.late, r.Attempt)
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

// call calls the task, with a context of the run, and tells the tracer.
func (r *runLock) call(ctx context.Context, task func(context.Context) error) (err error) {
	ctx, cancel := r.context(ctx)
	defer cancel()
	r.job.s.teller.begun(r)
	panicked := true
	if tracer := r.job.s.cfg.tracer.run; tracer != nil {
		data := TraceRunStartData{Run: r.Run, Term: r.job.s.leader.term()}
		if !r.Tick.IsZero() {
			data.Delay = r.job.s.cfg.clock.Since(r.Tick)
		}
		ctx = tracer.TraceRunStart(ctx, data)
		if t, ok := tracer.(TraceIdentifier); ok {
			r.traced(t.TraceID(ctx))
		}
		began := time.Now()
		defer func() {
			tracer.TraceRunEnd(ctx, TraceRunEndData{Run: r.Run, Duration: time.Since(began), Err: err, Panicked: panicked})
		}()
	}
	err = task(ctx)
	panicked = false
	r.returned(err)
	return err
}

// called notes that the task is called, with a context that stop ends.
func (r *runLock) called(stop context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.began, r.stop = working, time.Now(), stop
	r.job.backlog.refusals.Store(0)
}

// returned notes that it has returned.
func (r *runLock) returned(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state, r.took, r.err = ended, time.Since(r.began), err
}

// failed notes that it has panicked. A nil run is none.
func (r *runLock) failed(p *PanicError) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.panicked = p
}

func (r *runLock) traced(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trace = id
}

// cancel ends the task's context, and reports whether the task is called and has not returned.
func (r *runLock) cancel(why error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != working {
		return false
	}
	r.cancelled = true
	r.stop(why)
	return true
}

// context is the lease's context, with which it has the values of the job's, and ends also with the
// job's context and the leadership.
func (r *runLock) context(job context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithValue(r.lease.Context(), runKey{}, r.Run))
	stops := []func() bool{context.AfterFunc(job, func() { cancel(context.Cause(job)) })}
	r.called(cancel)
	if term := r.job.s.leader.term(); term != nil {
		stops = append(stops, context.AfterFunc(term.Context(), func() { cancel(context.Cause(term.Context())) }))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel(context.Canceled)
	}
}

// runQueue is a queue of runs.
type runQueue struct {
	mu   sync.Mutex
	list []*runLock // guarded by mu
}

func (q *runQueue) add(r *runLock) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, r)
}

// anyRun is what take may be asked for.
func anyRun(*runLock) bool { return true }

// take removes the first that fits, or returns nil.
func (q *runQueue) take(fits func(*runLock) bool) *runLock {
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
func (q *runQueue) remove(r *runLock) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.list, r)
	if i < 0 {
		return false
	}
	q.list = slices.Delete(q.list, i, i+1)
	return true
}
