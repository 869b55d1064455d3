package gocronx

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
)

// ErrStopped is the error of an offer while the Executor is not started, or is being stopped.
var ErrStopped = errors.New("scheduler: gocron is not started, or is being stopped")

// Executor is a gocron scheduler that times nothing: see Job. It is safe for concurrent use, but
// Start and Stop are called one at a time.
type Executor struct {
	gocron    gocron.Scheduler
	monitor   gocron.SchedulerMonitor // the user's
	unoffered func(job string) error

	mu      sync.Mutex
	stopped chan struct{}      // guarded by mu; closed while gocron is stopped
	down    bool               // guarded by mu; for good
	jobs    map[uuid.UUID]*Job // guarded by mu
	idle    chan struct{}      // guarded by mu; closed when gocron's loop has stopped; nil before Start
	asking  sync.WaitGroup     // calls of RunNow; none is added while stopped is closed
}

// NewExecutor makes one. location is that of the times that gocron tells. unoffered makes the error
// of a call of Lock that nothing was offered for, which reaches gocron.AfterLockError: it is to say
// that nothing is wrong. Errors are gocron's, about its options.
func NewExecutor(s *Settings, location *time.Location, stopTimeout time.Duration, unoffered func(job string) error) (*Executor, error) {
	e := &Executor{monitor: s.Monitor, unoffered: unoffered, stopped: make(chan struct{}), jobs: make(map[uuid.UUID]*Job)}
	close(e.stopped)
	var err error
	e.gocron, err = gocron.NewScheduler(append(slices.Clip(s.handed),
		gocron.WithLocation(location),
		gocron.WithStopTimeout(stopTimeout),
		gocron.WithSchedulerMonitor(&monitor{s.Monitor, e}),
	)...)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Gocron is the scheduler, for its jobs to be listed and removed. It is started and stopped by the
// Executor alone.
func (e *Executor) Gocron() gocron.Scheduler { return e.gocron }

// NewJob makes a job of a definition that has a name, in the place of the job with the identifier
// replaces, unless that is zero. As with gocron, that is gone also if there is an error, and a
// gocron.WithIdentifier of the definition wins. shown is given the job, and returns the gocron.Job
// that users are to see in its place. Monitors hear of it by Job.Register. Errors are gocron's, and
// ErrStopped after Shutdown.
func (e *Executor) NewJob(d *Definition, replaces uuid.UUID, shown func(*Job) gocron.Job) error {
	id := cmp.Or(d.ID, replaces)
	if id == uuid.Nil {
		id = uuid.New()
	}
	j := newJob(e, d)
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
	e.mu.Lock()
	down := e.down
	e.mu.Unlock()
	if j.Job == nil || down { // gocron keeps no job then
		return ErrStopped
	}
	j.shown = shown(j)
	e.mu.Lock()
	e.jobs[id] = j
	e.mu.Unlock()
	return nil
}

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

// Start is gocron's. It does nothing, and returns false, if the Executor is started, or was shut
// down. gocron's StopJobs returns a little before it can be started again, or its context lets it return long
// before, and gocron's Start does nothing then: this one waits, for the stop timeout at most.
func (e *Executor) Start() bool {
	e.mu.Lock()
	ready, idle := !e.down && isClosed(e.stopped), e.idle
	e.mu.Unlock()
	if !ready {
		return false
	}
	if idle != nil {
		<-idle
	}
	e.mu.Lock()
	e.idle = make(chan struct{})
	e.mu.Unlock()
	e.gocron.Start()
	e.mu.Lock()
	e.stopped = make(chan struct{})
	e.mu.Unlock()
	return true
}

// onIdle is called by gocron's loop when it has stopped. It may not have been started.
func (e *Executor) onIdle() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.idle != nil && !isClosed(e.idle) {
		close(e.idle)
	}
}

// Stop ends what is offered and not begun, and then calls stop, for example
// gocron.Scheduler.StopJobs. With forGood it is not started again. Before that it waits until
// gocron has answered what it is being asked, a second at most.
func (e *Executor) Stop(forGood bool, stop func(gocron.Scheduler) error) error {
	e.mu.Lock()
	e.down = e.down || forGood
	if !isClosed(e.stopped) {
		close(e.stopped)
	}
	idle := e.idle
	e.mu.Unlock()
	e.asking.Wait()
	err := stop(e.gocron)
	if err == nil && idle != nil {
		<-idle // a moment later; a second Shutdown before that would time out
	}
	return err
}

// running returns a channel that is closed when the Executor is stopped.
func (e *Executor) running() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopped
}

// ask has gocron call Lock for a job, unless it is stopped: it would hang.
func (e *Executor) ask(j *Job, stopped <-chan struct{}) error {
	e.mu.Lock()
	if isClosed(stopped) {
		e.mu.Unlock()
		return ErrStopped
	}
	e.asking.Add(1)
	e.mu.Unlock()
	defer e.asking.Done()
	return j.Job.RunNow()
}

// job returns the one of an id; nil if there is none.
func (e *Executor) job(id uuid.UUID) *Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.jobs[id]
}

// forget removes it.
func (e *Executor) forget(id uuid.UUID) *Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	j := e.jobs[id]
	delete(e.jobs, id)
	return j
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
