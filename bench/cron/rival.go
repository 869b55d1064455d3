package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"

	"github.com/tenure-dev/tenure/tools/harness/clients"
	"github.com/tenure-dev/tenure/tools/soak/record"
	"github.com/tenure-dev/tenure/tools/soak/replica"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

// rival is a replica of the soak with gocron's own scheduler, whose runs somebody else locks.
type rival struct {
	*replica.Process
	replica.Settings
	clock  replica.Clock
	locker *ticking
	gocron.Scheduler
}

var errTask = errors.New("the task fails")

// beginLocked has gocron lock each run of each job. Jobs that Tenure leaves to a leader are locked
// as well: the locker has no election.
func beginLocked(p *clients.Process, s replica.Settings, inner gocron.Locker, closeAll func() error) (func() error, error) {
	r := &rival{Process: &replica.Process{Process: p}, Settings: s, clock: replica.Clock{Clock: clockwork.NewRealClock(), Ahead: s.Ahead}}
	r.locker = &ticking{Locker: inner, clock: r.clock, jobs: make(map[string]gocron.Job), ticks: make(map[string]int64)}
	var err error
	r.Scheduler, err = gocron.NewScheduler(gocron.WithClock(r.clock), gocron.WithLocation(time.UTC),
		gocron.WithDistributedLocker(r.locker), gocron.WithStopTimeout(replica.Stopping))
	if err != nil {
		return nil, err
	}
	for _, j := range work.Jobs() {
		definition, err := j.Definition(s.Start, s.Duration)
		if err == nil {
			_, err = r.add(j, definition)
		}
		if err != nil {
			return nil, err
		}
	}
	r.Scheduler.Start()
	ctx, cancel := context.WithCancel(context.Background())
	var busy sync.WaitGroup
	busy.Go(func() { replica.CreateOneTimeJobs(ctx, r.Process, r.clock, r.add) })
	replica.AskForRuns(ctx, r.Process, s.Seed, r.Jobs(), &busy)
	return func() error {
		cancel()
		busy.Wait()
		return errors.Join(r.Shutdown(), closeAll())
	}, nil
}

func (r *rival) add(j work.Job, definition gocron.JobDefinition) (gocron.Job, error) {
	task := gocron.NewTask(func(ctx context.Context) error { return r.task(ctx, j) })
	opts := []gocron.JobOption{gocron.WithName(j.Name)}
	if j.Panics {
		opts = append(opts, gocron.WithEventListeners(gocron.AfterJobRunsWithPanic(func(uuid.UUID, string, any) {})))
	}
	job, err := r.NewJob(definition, task, opts...)
	if err == nil {
		r.locker.know(job)
	}
	return job, err
}

// task takes as long as that of a replica with Tenure, and fails and panics as often.
func (r *rival) task(ctx context.Context, j work.Job) error {
	tick := r.locker.tick(&j)
	r.Append(record.Record{Kind: record.Begin, Job: j.Name, Tick: tick})
	n := tick / interval(&j).Milliseconds()
	if j.Panics && n%4 == 0 {
		panic("each fourth tick")
	}
	if j.Deaf {
		ctx = context.WithoutCancel(ctx)
	}
	timer := time.NewTimer(j.Takes)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if j.Fails && n%3 == 0 {
		return errTask
	}
	return nil
}

// ticking finds out for which tick a lock is asked for: gocron tells neither lockers nor tasks.
type ticking struct {
	gocron.Locker
	clock replica.Clock

	mu    sync.Mutex
	jobs  map[string]gocron.Job // guarded by mu
	ticks map[string]int64      // guarded by mu; that of the lock of a job that was granted last, in milliseconds since 1970
}

func (l *ticking) know(job gocron.Job) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.jobs[job.Name()] = job
}

// early is how long before its time a timer may fire, by the clock that is asked afterwards.
const early = 5 * time.Millisecond

// Lock implements gocron.Locker. While it is called, the last of a job's scheduled times that has
// come is the tick that is to be run, also if its timer fired late because the process was frozen.
func (l *ticking) Lock(ctx context.Context, name string) (gocron.Lock, error) {
	now := l.clock.Now().Add(early)
	l.mu.Lock()
	job := l.jobs[name]
	l.mu.Unlock()
	tick := now
	if job != nil {
		runs, _ := job.NextRuns(8) // an error means that gocron is busy
		for i := len(runs) - 1; i >= 0; i-- {
			if !runs[i].IsZero() && !runs[i].After(now) {
				tick = runs[i]
				break
			}
		}
	}
	lock, err := l.Locker.Lock(ctx, name)
	if err == nil {
		l.mu.Lock()
		l.ticks[name] = tick.UnixMilli()
		l.mu.Unlock()
	}
	return lock, err
}

// tick is that of the run of a job that has just begun. gocron calls the task as soon as the lock
// was granted.
func (l *ticking) tick(j *work.Job) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.ticks[j.Name]
	return at - at%interval(j).Milliseconds()
}

// interval is what all ticks of a job are multiples of.
func interval(j *work.Job) time.Duration {
	if j.Kind == work.Once {
		return work.OnceEvery
	}
	return j.Every
}
