package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
)

var _ gocron.Scheduler = (*Scheduler)(nil)

// Scheduler is a gocron.Scheduler for a service with several replicas: each tick of a job is run once, by one of them, and no
// run is joined by another one of the same job, on whatever replica. Make one with New on each replica, with the same jobs. The package
// documentation says what gocron's options mean with it.
//
// It is safe for concurrent use.
type Scheduler struct {
	gocron.Scheduler
	*state
	with []JobOption
}

// state is what a Scheduler shares with those that With makes of it.
type state struct {
	q       *redlock.Quorum
	cfg     *config
	inner   gocron.Scheduler
	leader  *leadership // nil without an election
	running *gauge
	limited bool      // gocron.WithLimitConcurrentJobs
	warned  sync.Once // about a gocron that does not tell what its options set

	lifecycle  sync.Mutex   // held by Start, StopJobs and Shutdown
	down       bool         // guarded by lifecycle; Shutdown was called
	asking     sync.RWMutex // held for reading by RunNow, for writing by what stops gocron
	installing sync.Mutex   // held by NewJob and Update, so that no two jobs get one name
	mu         sync.Mutex
	jobs       map[uuid.UUID]*job // guarded by mu
	started    context.Context    // guarded by mu; ends with StopJobs and Shutdown; nil while stopped
	stop       context.CancelFunc // guarded by mu
	lookups    sync.WaitGroup     // for missed ticks
}

// New makes a Scheduler on a Quorum, which stays the caller's: close it after Shutdown. It does no I/O. Errors are *OptionError, or
// gocron's own about its options.
func New(q *redlock.Quorum, opts ...Option) (*Scheduler, error) {
	if q == nil {
		return nil, &OptionError{Option: "q", Reason: "is nil: make a Quorum with redlock.Open or redlock.New"}
	}
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if err := cfg.checkLease(q, cfg.lease...); err != nil {
		return nil, err
	}
	tried := triedScheduler(cfg.gocron)
	if err := tried.check(schedulerRefusals); err != nil {
		return nil, err
	}
	s := &Scheduler{state: &state{q: q, cfg: cfg, running: &gauge{}, jobs: make(map[uuid.UUID]*job)}}
	s.limited = tried.set("exec", "limitMode")
	s.warn(tried)
	if cfg.election != "" {
		opts := []elector.Option{elector.WithDrainTimeout(cfg.stopTimeout), elector.WithLogger(cfg.logger)}
		if t, ok := cfg.tracer.run.(elector.CampaignTracer); ok {
			opts = append(opts, elector.WithTracer(t))
		}
		opts = append(opts, cfg.elector...)
		e, err := elector.New(q, cfg.election, opts...)
		if err != nil {
			return nil, &OptionError{Option: "WithElection", Reason: err.Error(), Err: err}
		}
		s.leader = newLeadership(e, s.running, s.elected)
	}
	s.Scheduler, err = gocron.NewScheduler(append([]gocron.SchedulerOption{
		gocron.WithClock(cfg.clock),
		gocron.WithLocation(cfg.location),
		gocron.WithStopTimeout(cfg.stopTimeout),
		gocron.WithDistributedLocker(&locker{s}),
	}, cfg.gocron...)...)
	if err != nil {
		return nil, err
	}
	s.inner = s.Scheduler
	return s, nil
}

// Elector returns the elector of WithElection, for who leads and since when; nil without.
func (s *Scheduler) Elector() *elector.Elector {
	if s.leader == nil {
		return nil
	}
	return s.leader.elector
}

// With returns the same Scheduler, whose NewJob and Update use these options for the job:
//
//	s.With(scheduler.WithCatchUp(time.Hour, scheduler.CatchUpLatest)).NewJob(...)
func (s *Scheduler) With(opts ...JobOption) *Scheduler {
	with := *s
	with.with = append(s.with[:len(s.with):len(s.with)], opts...)
	return &with
}

// NewJob is gocron's, for a task made by NewTask of this package and with gocron.WithName: the name is what replicas agree on, and must
// not change between builds. Errors are *OptionError for what does not fit several replicas, and gocron's own.
func (s *Scheduler) NewJob(definition gocron.JobDefinition, task gocron.Task, opts ...gocron.JobOption) (gocron.Job, error) {
	return s.install(uuid.Nil, definition, task, opts)
}

// Update is gocron's, with the conditions of NewJob. A run that goes on is told to end and keeps its lease until it has; ticks that it
// overlaps are treated as WithOverlap says.
func (s *Scheduler) Update(id uuid.UUID, definition gocron.JobDefinition, task gocron.Task, opts ...gocron.JobOption) (gocron.Job, error) {
	return s.install(id, definition, task, opts)
}

func (s *Scheduler) install(id uuid.UUID, definition gocron.JobDefinition, task gocron.Task, opts []gocron.JobOption) (gocron.Job, error) {
	s.installing.Lock()
	defer s.installing.Unlock()
	j, err := s.newJob(id, definition, task, opts)
	if err != nil {
		return nil, err
	}
	opts = append(opts[:len(opts):len(opts)], gocron.WithContext(context.WithValue(s.cfg.context, jobKey{}, j)))
	var made gocron.Job
	if id == uuid.Nil {
		made, err = s.inner.NewJob(definition, task, opts...)
	} else {
		defer s.prune() // gocron removes the old job also if it refuses the new one, and gocron.WithIdentifier may give that another id
		made, err = s.inner.Update(id, definition, task, opts...)
	}
	if err != nil {
		return nil, err
	}
	if made == nil {
		return nil, fmt.Errorf("scheduler: job %q: the Scheduler has been shut down", j.name)
	}
	if t := s.cfg.tracer.job; t != nil {
		t.TraceJob(s.cfg.context, TraceJobData{Job: j.name, Election: s.cfg.election})
	}
	j.gocron = made
	close(j.made)
	s.mu.Lock()
	old := s.jobs[made.ID()]
	s.jobs[made.ID()] = j
	s.mu.Unlock()
	if old != nil {
		old.chase.halt()
	}
	s.begin(j)
	return &publicJob{Job: made, job: j}, nil
}

// newJob checks what gocron is going to be asked for.
func (s *Scheduler) newJob(id uuid.UUID, definition gocron.JobDefinition, task gocron.Task, opts []gocron.JobOption) (*job, error) {
	cfg := s.cfg.job
	for i, o := range s.with {
		if o == nil {
			return nil, &OptionError{Option: "With", Reason: fmt.Sprintf("option %d is nil", i)}
		}
		if err := o.applyJob(&cfg); err != nil {
			return nil, err
		}
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	now := s.cfg.clock.Now()
	tried := triedJob(opts, now)
	if err := tried.check(jobRefusals); err != nil {
		return nil, err
	}
	schedule, name, err := s.look(definition, opts)
	if err != nil {
		return nil, err
	}
	key, err := s.cfg.key(name)
	if err != nil {
		return nil, err
	}
	for _, other := range s.inner.Jobs() {
		if other.Name() == name && other.ID() != id {
			return nil, &OptionError{Option: "gocron.WithName", Reason: fmt.Sprintf("there is a job of the name %q already: the two would exclude each other", name)}
		}
	}
	if task == nil {
		return nil, gocron.ErrNewJobTaskNil
	}
	if !isOwn(task) {
		if err := gocronRefuses(task); err != nil {
			return nil, err
		}
		return nil, &OptionError{Option: "task", Reason: "is made by gocron.NewTask, which cannot be told of its lease: use scheduler.NewTask"}
	}
	if err := suits(schedule, tried, s.leader != nil); err != nil {
		return nil, err
	}
	j := &job{s: s, name: name, key: key, cfg: cfg, made: make(chan struct{}), open: tried.set("disabledLocker")}
	s.warn(tried)
	j.ticks = newTicker(schedule, definition, timeless(opts, now), s.cfg.location)
	j.keep = minKeep + 2*min(j.ticks.gap(now), maxKeep) + min(cfg.window, maxKeep)
	j.chase = &chase{job: j}
	return j, nil
}

// look has gocron look at the job, in a scheduler that is never started, and returns its schedule and its name.
func (s *Scheduler) look(definition gocron.JobDefinition, opts []gocron.JobOption) (gocron.JobSchedule, string, error) {
	if definition == nil {
		return nil, "", &OptionError{Option: "definition", Reason: "is nil: use gocron.CronJob, for example"}
	}
	for i, o := range opts {
		if o == nil {
			return nil, "", &OptionError{Option: "gocron.JobOption", Reason: fmt.Sprintf("option %d is nil", i)}
		}
	}
	probe, err := gocron.NewScheduler(gocron.WithClock(s.cfg.clock), gocron.WithLocation(s.cfg.location))
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = probe.Shutdown() }()
	j, err := probe.NewJob(definition, gocron.NewTask(nameless), opts...)
	if err != nil {
		return nil, "", err
	}
	if strings.HasSuffix(j.Name(), "/scheduler.nameless") {
		return nil, "", &OptionError{Option: "gocron.WithName", Reason: "the job has no name: by it replicas agree on what they run, so give it one that stays the same"}
	}
	return j.Schedule(), j.Name(), nil
}

// nameless is a task whose name shows that a job was given none.
func nameless() {}

// Jobs is gocron's.
func (s *Scheduler) Jobs() []gocron.Job {
	jobs := s.inner.Jobs()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, j := range jobs {
		if own := s.jobs[j.ID()]; own != nil {
			jobs[i] = &publicJob{Job: j, job: own}
		}
	}
	return jobs
}

// RemoveJob is gocron's. A run that goes on is told to end and keeps its lease until it has; ticks that wait are given up.
func (s *Scheduler) RemoveJob(id uuid.UUID) error {
	defer s.prune()
	return s.inner.RemoveJob(id)
}

// RemoveByTags is gocron's; see RemoveJob.
func (s *Scheduler) RemoveByTags(tags ...string) {
	defer s.prune()
	s.inner.RemoveByTags(tags...)
}

// prune forgets jobs that gocron has forgotten.
func (s *state) prune() {
	there := make(map[uuid.UUID]bool)
	for _, j := range s.inner.Jobs() {
		there[j.ID()] = true
	}
	var gone []*job
	s.mu.Lock()
	for id, j := range s.jobs {
		if !there[id] {
			gone = append(gone, j)
			delete(s.jobs, id)
		}
	}
	s.mu.Unlock()
	for _, j := range gone {
		j.chase.halt()
	}
}

// skip reports a tick that is not run.
func (s *state) skip(ctx context.Context, e *SkipError) {
	level := slog.LevelWarn
	switch e.Reason {
	case SkipHeld, SkipDone, SkipOverlap, SkipNotLeader, SkipSuperseded, SkipStopped:
		level = slog.LevelDebug
	}
	s.cfg.logger.Log(ctx, level, "scheduler: tick is skipped", "job", e.Job, "tick", e.Tick, "reason", string(e.Reason), "by", e.By, "pending", e.Pending, "error", e.Err)
	if t := s.cfg.tracer.skip; t != nil {
		t.TraceSkip(ctx, TraceSkipData{Skip: e})
	}
}

func (s *state) warn(f *fields) {
	if text := f.warning(); text != "" {
		s.warned.Do(func() { s.cfg.logger.Warn(text) })
	}
}
