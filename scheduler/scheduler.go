package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
)

var _ gocron.Scheduler = (*Scheduler)(nil)

// Scheduler is a gocron.Scheduler for a service with several replicas: each tick of a job is run
// once, by one of them, and no run is joined by another one of the same job, on whatever replica.
// Make one with New on each replica, with the same jobs. The package documentation says what
// gocron's options mean with it.
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
	tasks   tasks
	limited bool // gocron.WithLimitConcurrentJobs

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

// New makes a Scheduler on a Quorum, which stays the caller's: close it after Shutdown. It does no
// I/O. Errors are *OptionError, or gocron's own about its options.
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
	s := &Scheduler{state: &state{q: q, cfg: cfg, jobs: make(map[uuid.UUID]*job)}}
	s.limited = tried.set("exec", "limitMode")
	if err := tried.unknown(); err != nil {
		return nil, err
	}
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
		s.leader = newLeadership(e, s.elected)
	}
	s.Scheduler, err = gocron.NewScheduler(append(slices.Clone(cfg.gocron),
		gocron.WithClock(cfg.clock),
		gocron.WithLocation(cfg.location),
		gocron.WithStopTimeout(cfg.stopTimeout),
		gocron.WithDistributedLocker(&locker{s}),
	)...)
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

// NewJob is gocron's, for a task made by NewTask of this package and with gocron.WithName: the name
// is what replicas agree on, and must not change between builds. Errors are *OptionError for what
// does not fit several replicas, and gocron's own.
func (s *Scheduler) NewJob(definition gocron.JobDefinition, task gocron.Task, opts ...gocron.JobOption) (gocron.Job, error) {
	return s.install(uuid.Nil, definition, task, opts)
}

// Update is gocron's, with the conditions of NewJob. A run that goes on is told to end and keeps
// its lease until it has; ticks that it overlaps are treated as WithOverlap says.
func (s *Scheduler) Update(id uuid.UUID, definition gocron.JobDefinition, task gocron.Task, opts ...gocron.JobOption) (gocron.Job, error) {
	return s.install(id, definition, task, opts)
}

func (s *Scheduler) install(id uuid.UUID, definition gocron.JobDefinition, task gocron.Task, opts []gocron.JobOption) (gocron.Job, error) {
	s.installing.Lock()
	defer s.installing.Unlock()
	j, definition, opts, err := s.newJob(id, definition, task, slices.Concat(s.cfg.global, opts))
	if err != nil {
		return nil, err
	}
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

// newJob checks what gocron is going to be asked for, and returns the definition and the options to
// ask it with.
func (s *Scheduler) newJob(id uuid.UUID, definition gocron.JobDefinition, task gocron.Task, opts []gocron.JobOption) (*job, gocron.JobDefinition, []gocron.JobOption, error) {
	cfg := s.cfg.job
	for i, o := range s.with {
		if o == nil {
			return nil, nil, nil, &OptionError{Option: "With", Reason: fmt.Sprintf("option %d is nil", i)}
		}
		if err := o.applyJob(&cfg); err != nil {
			return nil, nil, nil, err
		}
	}
	for i, o := range opts {
		if o == nil {
			return nil, nil, nil, &OptionError{Option: "gocron.JobOption", Reason: fmt.Sprintf("option %d is nil", i-len(s.cfg.global))}
		}
	}
	now := s.cfg.clock.Now()
	tried := triedJob(opts, now)
	if err := tried.check(jobRefusals); err != nil {
		return nil, nil, nil, err
	}
	if overlap, asked := singleton(tried); asked {
		cfg.overlap = overlap
		opts = without(opts, now, "singletonMode")
	}
	if err := cfg.check(); err != nil {
		return nil, nil, nil, err
	}
	schedule, name, err := s.look(definition, task, opts)
	if err != nil {
		return nil, nil, nil, err
	}
	key, err := s.cfg.key(name)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, other := range s.inner.Jobs() {
		if other.Name() == name && other.ID() != id {
			return nil, nil, nil, &OptionError{Option: "gocron.WithName", Reason: fmt.Sprintf("there is a job of the name %q already: the two would exclude each other", name)}
		}
	}
	if err := suits(schedule, tried, s.leader != nil); err != nil {
		return nil, nil, nil, err
	}
	var table timetable
	if _, isCron := schedule.(gocron.CronJobSchedule); isCron && tried.set("cron") {
		table = &foreign{definition: definition, options: timeless(opts, now), zone: s.cfg.location}
	} else if table, err = newTimetable(schedule, gocron.DaylightSavingsTimePolicy(tried.number("daylightSavingsTimePolicy")), s.cfg.location); err != nil {
		return nil, nil, nil, err
	} else if table != nil {
		definition = gocron.CronJob(describe(schedule), true)
		opts = append(opts, gocron.WithCronImplementation(cron{table, s.cfg.location}), gocron.WithDaylightSavingsTimePolicy(gocron.DaylightSavingsTimeDefault))
	}
	j := &job{s: s, name: name, key: key, cfg: cfg, made: make(chan struct{}), open: tried.set("disabledLocker"), as: schedule, ticks: newTicker(schedule, table)}
	if err := tried.unknown(); err != nil {
		return nil, nil, nil, err
	}
	j.chase = &chase{job: j}
	j.labels = &labels{own: newLabel(schedule, table), began: now}
	return j, definition, slices.Concat([]gocron.JobOption{recovering()}, opts, []gocron.JobOption{ //mutant:task-panic-not-recovered
		gocron.WithContext(context.WithValue(s.cfg.context, jobKey{}, j)),
	}), nil
}

// look has gocron look at the job, in a scheduler that is never started, and returns its schedule
// and its name.
func (s *Scheduler) look(definition gocron.JobDefinition, task gocron.Task, opts []gocron.JobOption) (gocron.JobSchedule, string, error) {
	switch {
	case definition == nil:
		return nil, "", &OptionError{Option: "definition", Reason: "is nil: use gocron.CronJob, for example"}
	case task == nil:
		return nil, "", gocron.ErrNewJobTaskNil
	}
	now := s.cfg.clock.Now()
	name, schedule, err := probeJob(definition, task, opts, now)
	_, once := schedule.(gocron.OneTimeJobSchedule)
	switch {
	case once, errors.Is(err, gocron.ErrOneTimeJobStartDateTimePast):
		// gocron leaves out the times that have passed, and refuses a job when all have.
		name, schedule, err = probeJob(definition, task, timeless(opts, now), time.Time{})
	case errors.Is(err, gocron.ErrWithStartDateTimePast):
		return nil, "", &OptionError{Option: "gocron.WithStartAt", Reason: "the time has passed, as it has whenever a replica is started after it: " +
			"use gocron.WithStartDateTimePast, which takes such a time", Err: err}
	case errors.Is(err, gocron.ErrWithStopDateTimePast):
		return nil, "", &OptionError{Option: "gocron.WithStopAt", Reason: "the time has passed: the job is over, so do not create it any more", Err: err}
	}
	if err == nil && strings.HasSuffix(name, "/scheduler.nameless") {
		err = &OptionError{Option: "gocron.WithName", Reason: "the job has no name: by it replicas agree on what they run, so give it one that stays the same"}
	}
	return schedule, name, err
}

// probeJob has gocron look at a job as if it were a certain time.
func probeJob(definition gocron.JobDefinition, task gocron.Task, opts []gocron.JobOption, now time.Time) (name string, schedule gocron.JobSchedule, err error) {
	probe, err := gocron.NewScheduler(gocron.WithClock(clockwork.NewFakeClockAt(now)), gocron.WithLocation(time.UTC))
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = probe.Shutdown() }()
	switch own, err := nameOf(probe, task); {
	case err != nil:
		return "", nil, err
	case !isOwn(own):
		return "", nil, &OptionError{Option: "task", Reason: "is made by gocron.NewTask, which cannot be told of its lease: use scheduler.NewTask"}
	}
	j, err := probe.NewJob(definition, gocron.NewTask(nameless), opts...)
	if err != nil {
		return "", nil, err
	}
	return j.Name(), j.Schedule(), nil
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

// RemoveJob is gocron's. A run that goes on is told to end and keeps its lease until it has; ticks
// that wait are given up.
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
	if e.Expected() {
		level = slog.LevelDebug
	}
	s.cfg.logger.Log(ctx, level, "scheduler: tick is skipped", "job", e.Job, "tick", e.Tick, "reason", string(e.Reason), "by", e.By, "pending", e.Pending, "error", e.Err)
	if t := s.cfg.tracer.skip; t != nil {
		t.TraceSkip(ctx, TraceSkipData{Skip: e})
	}
}
