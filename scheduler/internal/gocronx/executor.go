package gocronx

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
)

// ErrStopped is the error of what is asked of an Executor that was shut down.
var ErrStopped = errors.New("scheduler: gocron was shut down")

// Executor is a gocron scheduler that times nothing: see Job. It runs from when it is made until
// Shutdown, so it can always be asked for a run: gocron stands still if it is asked while stopped.
// It is safe for concurrent use, but Shutdown is called one at a time.
type Executor struct {
	gocron    gocron.Scheduler
	monitor   gocron.SchedulerMonitor // the user's
	unoffered func(job string) error
	down      chan struct{} // closed by Shutdown
	jobs      sync.Map      // *Job by uuid.UUID
}

// NewExecutor makes one. location is that of the times that gocron tells. unoffered makes the error
// of a call of Lock that nothing was offered for, which reaches gocron.AfterLockError: it is to say
// that nothing is wrong. Errors are gocron's, about its options.
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

// Gocron is the scheduler, for its jobs to be listed and removed. It is started and stopped by the
// Executor alone.
func (e *Executor) Gocron() gocron.Scheduler { return e.gocron }

// Shutdown ends what is offered and not begun, and has gocron end for good. It waits for what has
// begun, until ctx ends, and returns its cause then.
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

// Install has gocron make a job, in the place of the one with the identifier replaces, unless that
// is zero. As with gocron, that is gone also if there is an error, and a gocron.WithIdentifier of
// the definition wins. shown is what users are to see in its place; monitors hear of it by
// Job.Register. Errors are gocron's, and ErrStopped after Shutdown.
func (e *Executor) Install(j *Job, replaces uuid.UUID, shown gocron.Job) error {
	d := j.Definition
	id := cmp.Or(d.ID, replaces)
	if id == uuid.Nil {
		id = uuid.New()
	}
	j.executor, j.shown = e, shown
	// Without any such listener gocron lets a panic of the task end the process. The user's own
	// takes its place.
	recovering := gocron.WithEventListeners(gocron.AfterJobRunsWithPanic(func(uuid.UUID, string, any) {}))
	opts := slices.Concat([]gocron.JobOption{recovering}, d.handed, []gocron.JobOption{
		gocron.WithIdentifier(id),
		gocron.WithCronImplementation(never{}),
		gocron.WithDistributedJobLocker(&door{j}),
	})
	definition, task := gocron.CronJob("never", false), gocron.NewTask(j.call)
	var err error
	if replaces == uuid.Nil {
		j.Job, err = e.gocron.NewJob(definition, task, opts...)
	} else {
		j.Job, err = e.gocron.Update(replaces, definition, task, opts...)
	}
	if err != nil {
		return err
	}
	if j.Job == nil || isClosed(e.down) { // gocron keeps no job then
		return ErrStopped
	}
	e.jobs.Store(id, j)
	return nil
}

// IsDown reports whether Shutdown was called.
func (e *Executor) IsDown() bool { return isClosed(e.down) }

// Shown is what users see of a job; nil if there is none.
func (e *Executor) Shown(id uuid.UUID) gocron.Job {
	if j := e.job(id); j != nil {
		return j.shown
	}
	return nil
}

// never is a gocron.Cron that is never due. gocron removes a job whose next time is zero.
type never struct{}

func (never) IsValid(string, *time.Location, time.Time) error { return nil }
func (never) Next(time.Time) time.Time                        { return time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC) }

// job returns the one of an id; nil if there is none.
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
