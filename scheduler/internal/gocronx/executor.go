package gocronx

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
)

// ErrStopped is returned by an Executor, and by its jobs, after Shutdown.
var ErrStopped = errors.New("scheduler: gocron was shut down")

// Executor is a gocron scheduler that times nothing; see Job. It runs until Shutdown, so it can be
// asked for a run at any time. A gocron scheduler that is asked while it is stopped stands still.
// An Executor is safe for concurrent use, but only one call of Shutdown may run at a time.
type Executor struct {
	gocron    gocron.Scheduler
	monitor   gocron.SchedulerMonitor // the user's
	unoffered func(job string) error
	down      chan struct{} // closed by Shutdown
	jobs      sync.Map      // *Job by uuid.UUID
}

// NewExecutor makes an Executor and starts gocron. location is the zone of the times that gocron
// tells. unoffered makes the error for a call of Lock for which there is no offer. That error
// reaches gocron.AfterLockError, and must say that nothing is wrong. Errors are gocron's, about its
// options.
func NewExecutor(s *Settings, location *time.Location, stopTimeout time.Duration, unoffered func(job string) error) (*Executor, error) {
	e := &Executor{monitor: s.Monitor, unoffered: unoffered, down: make(chan struct{})}
	var err error
	e.gocron, err = gocron.NewScheduler(append(slices.Clip(s.handed),
		gocron.WithLocation(location),
		gocron.WithStopTimeout(stopTimeout),
		gocron.WithSchedulerMonitor(&monitor{s.Monitor, e}),
	)...)
	if err != nil {
		return nil, err
	}
	e.gocron.Start()
	return e, nil
}

// Gocron returns gocron's scheduler, to list and remove its jobs. Only the Executor starts and
// stops it.
func (e *Executor) Gocron() gocron.Scheduler { return e.gocron }

// Shutdown withdraws the offers that have not begun, and shuts gocron down for good. It waits for
// runs that have begun until ctx ends, and then returns the cause of ctx.
func (e *Executor) Shutdown(ctx context.Context) error {
	if isClosed(e.down) {
		return nil
	}
	close(e.down)
	err := e.gocron.ShutdownWithContext(ctx)
	if errors.Is(err, ctx.Err()) {
		err = context.Cause(ctx)
	}
	return err
}

// Install has gocron make a job. If replaces is not zero, the job takes the place of the one with
// that identifier, which is gone even if Install fails. A gocron.WithIdentifier of the definition
// wins over replaces, as with gocron. Users see shown in place of the job. Monitors hear of the job
// by Job.Register. Errors are gocron's, and ErrStopped after Shutdown.
func (e *Executor) Install(j *Job, replaces uuid.UUID, shown gocron.Job) error {
	d := j.Definition
	id := cmp.Or(d.ID, replaces)
	if id == uuid.Nil {
		id = uuid.New()
	}
	j.executor, j.shown = e, shown
	// Without a listener for panics gocron lets a panic of the task end the process. A listener of
	// the user's takes the place of this one.
	recovering := gocron.WithEventListeners(gocron.AfterJobRunsWithPanic(func(uuid.UUID, string, any) {}))
	opts := slices.Concat([]gocron.JobOption{recovering}, d.handed, []gocron.JobOption{
		gocron.WithIdentifier(id),
		gocron.WithDistributedJobLocker(&door{j}),
	})
	// gocron is asked for each run, and itself finds none due in 292 years. Without an identifier
	// its Update is its NewJob.
	definition, task := gocron.DurationJob(math.MaxInt64), gocron.NewTask(j.call)
	var err error
	if j.Job, err = e.gocron.Update(replaces, definition, task, opts...); err != nil {
		return err
	}
	if j.Job == nil || isClosed(e.down) { // gocron keeps no job after Shutdown
		return ErrStopped
	}
	e.jobs.Store(id, j)
	return nil
}

// IsDown reports whether Shutdown was called.
func (e *Executor) IsDown() bool { return isClosed(e.down) }

// Shown returns the job that users see; nil if there is none with that id.
func (e *Executor) Shown(id uuid.UUID) gocron.Job {
	if j := e.job(id); j != nil {
		return j.shown
	}
	return nil
}

// job returns the job with that id; nil if there is none.
func (e *Executor) job(id uuid.UUID) *Job {
	j, _ := e.jobs.Load(id)
	own, _ := j.(*Job)
	return own
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
