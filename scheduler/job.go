package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/scheduler/internal/agenda"
	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
	"github.com/tenure-dev/tenure/scheduler/internal/timetable"
)

// job is a job of a Scheduler.
type job struct {
	s        *state
	name     string
	key      string // of its lease
	cfg      jobConfig
	def      joblog.Definition
	spec     timetable.Spec
	unlocked bool // runs everywhere: gocron.WithDisabledDistributedJobLocker
	gocron   *gocronx.Job
	record   register.Register
	pause    register.Register
	ahead    time.Duration // how long before its time a tick is asked for
	pauses   news[PauseTrace]
	logged   news[LogTrace]
	told     definitions
	entry    agenda.Entry

	mu         sync.Mutex
	ctx        context.Context // guarded by mu, as what follows; ends when the job stops; nil while it is stopped
	cancel     context.CancelFunc
	unkeep     func() // ends register.Keep
	busy       bool   // a turn goes on
	again      bool   // the job was woken meanwhile
	view       view
	adopted    bool      // view.table is that of def, and this replica need not write it
	replaced   string    // the definition that this replica has replaced; empty for none
	otherSince time.Time // when another definition was seen first; zero for none
	conflict   *Conflict
	never      unbegun // the last grant that was not acted on

	// Of the turn that goes on, of which there is one at a time.
	triedAhead time.Time // the tick that was asked for ahead of its time
	failures   int       // of the nodes, in a row
	refusals   int       // runs in a row that were granted, and whose tasks were not called
}

// start has the job's ticks run until ctx ends.
func (j *job) start(ctx context.Context) {
	j.mu.Lock()
	j.ctx, j.cancel = context.WithCancel(ctx)
	j.view.readAt, j.adopted = time.Time{}, j.adopted && !j.unlocked
	if j.unkeep == nil && !j.unlocked {
		j.unkeep = register.Keep(j.s.q, j.record, j.pause)
	}
	j.mu.Unlock()
	j.kick()
}

// stop ends that. A run that goes on is told by gocron.
func (j *job) stop() {
	j.mu.Lock()
	unkeep, cancel := j.unkeep, j.cancel
	j.ctx, j.cancel, j.unkeep = nil, nil, nil
	j.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	j.s.agenda.Remove(&j.entry)
	if unkeep != nil {
		unkeep()
	}
	j.forget(context.Background())
}

// minKeep is the least time for which the nodes remember how far a job has come, and overKeep that
// of one that is not to begin anew when its runs are counted.
const (
	minKeep  = 24 * time.Hour
	overKeep = 400 * 24 * time.Hour
)

// keep is for how long the nodes remember the job: a day after it should have run again, twice, and
// at least its window.
func keep(table joblog.Table, policy joblog.Policy, now time.Time) time.Duration {
	if policy.Limit > 0 {
		return overKeep
	}
	gap := overKeep
	if first := table.Next(now); !first.IsZero() {
		if second := table.Next(first); second.After(first) {
			gap = min(2*second.Sub(now), MaxSpan)
		} else {
			gap = min(first.Sub(now)+overKeep, MaxSpan)
		}
	}
	return minKeep + gap + policy.Window
}

// newJob reads what NewJob was asked for, and refuses what does not fit several replicas.
func (s *state) newJob(definition gocron.JobDefinition, task gocron.Task, opts []gocron.JobOption) (*job, *gocronx.Definition, error) {
	d, err := s.definitions.Read(definition, task, slices.Concat(s.cfg.jobs, opts)...)
	switch {
	case err != nil:
		return nil, nil, invalidGocron(err)
	case d.Locker:
		return nil, nil, &OptionError{Option: "gocron.WithDistributedJobLocker", Reason: "the Scheduler is its own locker: leave it out, or use a bare gocron scheduler"}
	}
	key, err := keyOf(d.Name)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := newJobConfig(d)
	if err != nil {
		return nil, nil, err
	}
	spec, err := specOf(d, s.cfg.location)
	if err != nil {
		return nil, nil, err
	}
	table, err := timetable.New(spec)
	if err != nil {
		return nil, nil, invalidSchedule(err)
	}
	def := table.Definition()
	now := s.now()
	keep := keep(def.Table(now), cfg.policy, now)
	j := &job{
		s: s, name: d.Name, key: key, cfg: cfg, def: def, spec: spec, unlocked: d.WithoutLocking,
		record: register.Of(s.q, key, keep), pause: pause.Of(s.q, key), ahead: aheadOf(d.Name, s.q.Identity()),
	}
	j.pauses.tell, j.logged.tell, j.logged.told = j.tellPause, s.cfg.tracer.Log, LogTrace{Job: d.Name}
	j.entry.Wake = j.wake
	return j, d, nil
}

// shown takes over gocron's job, and returns it as users see it.
func (j *job) shown(made *gocronx.Job) gocron.Job {
	j.gocron = made
	return &publicJob{made, j}
}

// invalidGocron is gocronx's error about an option, in the words of this package.
func invalidGocron(err error) error {
	if invalid := new(gocronx.Error); errors.As(err, &invalid) {
		return &OptionError{Option: invalid.Option, Reason: invalid.Reason, Err: invalid}
	}
	return err
}

// local returns a time in the Scheduler's location.
func (s *state) local(at time.Time) time.Time {
	if at.IsZero() {
		return time.Time{}
	}
	return at.In(s.cfg.location)
}

// publicJob is a job as users see it.
type publicJob struct {
	*gocronx.Job
	job *job
}

var _ gocron.Job = (*publicJob)(nil)

// RunNow begins a run now, on this replica. It excludes other runs of the job on all replicas, and
// is not a tick of the schedule: it neither takes one's place nor is it caught up.
//
// It returns nil when the run begins, and does not wait for its end. In contrast to gocron's own it
// returns an error if there is no run: a *SkipError whose Reason is SkipOverlap if a run of the job
// goes on, on whatever replica; SkipNotLeader on a replica that does not lead (WithElection);
// SkipLimit with gocron.WithLimitConcurrentJobs; SkipNoQuorum, SkipTimeout, SkipSplit or
// SkipQuarantined if the lease could not be acquired within a second; and SkipStopped if the
// Scheduler is not started or is being stopped. A job that was removed is gocron.ErrJobNotFound.
// The error is for the caller: tracers and gocron's listeners are not told of it.
func (p *publicJob) RunNow() error {
	s := p.job.s
	s.mu.Lock()
	ctx, j := s.started, s.jobs[p.ID()]
	s.mu.Unlock()
	switch {
	case ctx == nil:
		return &SkipError{Job: p.job.name, Reason: SkipStopped, Err: fmt.Errorf("the Scheduler is not started: %w", gocron.ErrJobRunNowFailed)}
	case j == nil:
		return gocron.ErrJobNotFound
	}
	if _, err := j.runNow(ctx, ownOrder); err != nil {
		if errors.Is(err, gocron.ErrJobNotFound) {
			return err
		}
		return newSkipError(j.name, time.Time{}, err)
	}
	return nil
}

// NextRun is gocron's: zero if nothing is scheduled.
func (p *publicJob) NextRun() (time.Time, error) {
	runs, err := p.NextRuns(1)
	if len(runs) == 0 {
		return time.Time{}, err
	}
	return runs[0], err
}

// NextRuns is gocron's. It returns fewer times if there are no more, or if they are not known: of a
// random job, or one whose interval counts from the end of a run, only the next is.
func (p *publicJob) NextRuns(n int) ([]time.Time, error) {
	s := p.job.s
	s.mu.Lock()
	j := s.jobs[p.ID()]
	s.mu.Unlock()
	if j == nil {
		return nil, gocron.ErrJobNotFound
	}
	return j.next(n), nil
}

// next returns the next ticks, as far as they are known.
func (j *job) next(n int) (times []time.Time) {
	known, now := j.known(), j.s.now()
	table := known.table
	if table == nil {
		table = j.def.Table(now) // no replica's, but for the phase of an interval that nobody knows yet
	}
	if isChain(table) {
		if n > 0 && !known.rec.Next.IsZero() {
			times = append(times, j.s.local(known.rec.Next))
		}
		return times
	}
	for _, at := range timetable.NextRuns(table, later(now, table.From()), n) {
		times = append(times, j.s.local(at))
	}
	return times
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
