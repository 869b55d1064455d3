package gocronx

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"
)

// Job is a job of an Executor. It is never due: gocron calls its task for Run, and only then. The
// embedded job's RunNow, NextRun and NextRuns mean nothing.
type Job struct {
	gocron.Job
	Definition *Definition
	executor   *Executor
	shown      gocron.Job // what monitors see
	removed    chan struct{}
	turn       chan struct{}         // holds a value from an offer until its task is called
	current    atomic.Pointer[offer] // the offer that has the turn; nil for none
}

// NewJob makes a job of a definition that has a name, for Executor.Install.
func NewJob(d *Definition) *Job {
	return &Job{Definition: d, removed: make(chan struct{}), turn: make(chan struct{}, 1)}
}

// Schedule returns the schedule that NewJob was given.
func (j *Job) Schedule() gocron.JobSchedule { return j.Definition.Schedule }

// Register tells the monitor of the job. The caller holds no lock.
func (j *Job) Register() { j.executor.monitor.JobRegistered(j.shown) }

// IsRemoved reports whether gocron has removed the job, or replaced it.
func (j *Job) IsRemoved() bool { return isClosed(j.removed) }

// Run has gocron run the job once. gocron calls ready. When ready has returned nil, gocron calls
// listeners and monitors, and between them task in place of the job's. due is the tick's time,
// which JobSchedulingDelay is told; zero for a run that is no tick. Run returns nil when gocron is
// done with the run: even if a BeforeJobRunsSkipIfBeforeFuncErrors has kept task from being called,
// and even if ctx has ended after gocron began.
//
// gocron calls ready within its Lock. ready may wait: only this run waits for it, so gocron can be
// asked ahead of a due time. If ready returns an error, AfterLockError and monitors hear of it as
// of a skip, and Run returns it.
//
// Any other error means that gocron has not begun the run and will not. The error is the cause of
// ctx or of the job's parent context, ErrStopped, or gocron.ErrJobNotFound. While gocron is busy,
// Run asks it again until ctx ends.
//
// task gets gocron's context of the job, which ends when the job is removed and when the Executor
// is shut down. What task returns reaches gocron, and gocron recovers a panic of task. task must
// not call runtime.Goexit. Several runs may go on at a time.
func (j *Job) Run(ctx context.Context, due time.Time, ready func() error, task func(ctx context.Context) error) error {
	o := &offer{job: j, due: due, ready: ready, task: task, taken: make(chan struct{}), ended: make(chan struct{})}
	if err := j.offer(ctx, o); err != nil {
		return err
	}
	<-o.ended
	return o.err
}

// Skip tells gocron of a run that is not to be. AfterLockError hears the reason, and monitors hear
// of a skip. Skip returns reason when gocron has called Lock for it, else the errors of Run.
func (j *Job) Skip(ctx context.Context, reason error) error {
	return j.Run(ctx, time.Time{}, func() error { return reason }, nil)
}

// offer is a run or a skip that the next call of Lock is for.
type offer struct {
	job   *Job
	due   time.Time
	ready func() error
	task  func(context.Context) error
	taken chan struct{} // closed by Lock
	ended chan struct{} // closed when gocron is done with the offer
	err   error         // of ready; set before ended is closed

	decided atomic.Bool // Lock has taken the offer, or it was withdrawn
	passed  sync.Once
}

// offer makes an offer and returns when Lock has taken it.
func (j *Job) offer(ctx context.Context, o *offer) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var parent <-chan struct{}
	if j.Definition.Context != nil {
		parent = j.Definition.Context.Done()
	}
	// wait waits for turn or taken, or until gocron can no longer begin the run.
	wait := func(turn chan<- struct{}, taken <-chan struct{}) error {
		select {
		case turn <- struct{}{}:
			return nil
		case <-taken:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-j.executor.down:
			return ErrStopped
		case <-j.removed:
			return gocron.ErrJobNotFound
		case <-parent:
			return context.Cause(j.Definition.Context)
		}
	}
	if err := wait(j.turn, nil); err != nil {
		return err
	}
	j.current.Store(o)
	err := j.Job.RunNow()
	for errors.Is(err, gocron.ErrJobRunNowFailed) && ctx.Err() == nil && !isClosed(o.taken) && !isClosed(j.executor.down) {
		err = j.Job.RunNow() // gocron is busy, for example with a monitor, and gave up after 100 ms
	}
	if err == nil || errors.Is(err, gocron.ErrJobRunNowFailed) {
		err = wait(nil, o.taken)
	}
	if o.decided.Swap(true) {
		return nil
	}
	o.pass()
	return err
}

// door is the gocron.Locker of one job.
type door struct{ job *Job }

// Lock takes the current offer and waits until it is ready.
func (d *door) Lock(context.Context, string) (gocron.Lock, error) {
	o := d.job.current.Load()
	if o == nil || o.decided.Swap(true) { // the offer was withdrawn, or gocron was asked twice
		return nil, d.job.executor.unoffered(d.job.Definition.Name)
	}
	close(o.taken)
	if o.err = o.ready(); o.err != nil {
		o.pass()
		close(o.ended)
		return nil, o.err
	}
	return o, nil
}

// call is the task of gocron's job. gocron calls it after Lock, on the same goroutine.
func (j *Job) call(ctx context.Context) error {
	o := j.current.Load()
	o.pass()
	return o.task(ctx)
}

// Unlock ends a run. A listener may have kept its task from being called.
func (o *offer) Unlock(context.Context) error {
	o.pass()
	close(o.ended)
	return nil
}

// pass gives the turn to the next offer. Because offers take turns, the task that gocron calls is
// that of the run which Lock has just begun.
func (o *offer) pass() {
	o.passed.Do(func() {
		o.job.current.Store(nil)
		<-o.job.turn
	})
}
