package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/orders"
	"github.com/tenure-dev/tenure/redlock"
)

var _ gocron.Scheduler = (*Scheduler)(nil)

// Scheduler is a gocron.Scheduler for a service with several replicas: each tick of a job is run
// once, by one of them, and runs of one job never overlap, on whatever replica. Make one with New
// on each replica, with the same jobs. docs/scheduling.md says what gocron's options mean with it.
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
	teller  *teller
	taker   *orders.Taker // guarded by lifecycle; nil while stopped, and without orders
	limited bool          // gocron.WithLimitConcurrentJobs
	clock   clockWatch

	lifecycle  sync.Mutex   // held by Start, StopJobs and Shutdown
	asking     sync.RWMutex // held for reading by RunNow, for writing by what stops gocron
	installing sync.Mutex   // held by NewJob and Update, so that no two jobs get one name
	mu         sync.Mutex
	down       bool               // guarded by mu; Shutdown was called
	jobs       map[uuid.UUID]*job // guarded by mu
	started    context.Context    // guarded by mu; ends with StopJobs and Shutdown; nil while stopped
	stop       context.CancelFunc // guarded by mu
	reads      sync.WaitGroup     // of the nodes, in the background
}

// New makes a Scheduler on a Quorum, which stays the caller's: close it after Shutdown. It does no
// I/O. Errors are *OptionError, or gocron's own about its options.
func New(q *redlock.Quorum, opts ...Option) (*Scheduler, error) {
	if q == nil {
		return nil, &OptionError{Option: "q", Reason: "is nil: make a Quorum with redlock.Open or redlock.New"}
	}
	cfg, err := newConfig(q, opts)
	if err != nil {
		return nil, err
	}
	if err := cfg.checkLease(q, cfg.lease...); err != nil {
		return nil, err
	}
	set, err := schedulerSettings(cfg.gocron)
	if err != nil {
		return nil, err
	}
	if err := set.check(schedulerRefusals); err != nil {
		return nil, err
	}
	s := &Scheduler{state: &state{q: q, cfg: cfg, jobs: make(map[uuid.UUID]*job), limited: set.has(fieldLimitMode)}}
	s.clock.s = s.state
	s.teller = newTeller(s.state)
	if cfg.election != "" {
		if s.leader, err = newLeadership(q, cfg, s.clock.ahead, s.lookBackAll, s.forgetPauses); err != nil {
			return nil, err
		}
	}
	options := slices.Clone(cfg.gocron)
	if s.limited {
		options = append(options, gocron.WithSchedulerMonitor(&limitMonitor{set.monitor(), s.state}))
	}
	s.Scheduler, err = gocron.NewScheduler(append(options,
		gocron.WithClock(cfg.clock),
		gocron.WithLocation(cfg.location),
		gocron.WithStopTimeout(cfg.stopTimeout),
		gocron.WithDistributedLocker(&tickLocker{s}),
	)...)
	if err != nil {
		return nil, err
	}
	s.inner = s.Scheduler
	cfg.logger.InfoContext(cfg.context, "scheduler: the hours of schedules are of this time zone, which has to be the same on every replica",
		"zone", cfg.location, "now", cfg.clock.Now().In(cfg.location).Format(time.RFC3339))
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
// does not fit several replicas, one that matches ErrNotRunning after Shutdown, and gocron's own.
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
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down { // gocron would make a job that is never run
		return nil, shutDown{}
	}
	j, definition, opts, err := newJob(s, id, definition, task, slices.Concat(s.cfg.global, opts))
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
		return nil, shutDown{} // meanwhile
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
		old.backlog.stop()
		old.pauses.forget(s.cfg.context) // the new one may have another name, and looks by itself
	}
	s.begin(j)
	return &publicJob{Job: made, job: j}, nil
}

// Start is gocron's. It also begins to campaign (WithElection), and looks for ticks that were
// missed (WithCatchUp).
func (s *Scheduler) Start() {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	s.mu.Lock()
	if s.down {
		s.mu.Unlock()
		return
	}
	if s.started == nil {
		before := s.cfg.clock.Now().Add(-1)
		for _, j := range s.jobs {
			j.claims.restart(before)
		}
	}
	s.mu.Unlock()
	s.inner.Start()
	s.mu.Lock()
	if s.started != nil {
		s.mu.Unlock()
		return
	}
	ctx, cancel := context.WithCancel(s.cfg.context)
	s.started, s.stop = ctx, cancel
	jobs := s.list()
	s.mu.Unlock()
	for _, j := range jobs {
		s.begin(j)
	}
	s.leader.campaign(s.cfg.context)
	s.teller.start()
	s.takeOrders()
}

// list is called with mu held.
func (s *state) list() []*job {
	jobs := make([]*job, 0, len(s.jobs))
	for _, j := range s.jobs {
		jobs = append(jobs, j)
	}
	return jobs
}

// begin lets a job's ticks be run late, unless the Scheduler is stopped.
func (s *state) begin(j *job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started == nil || s.jobs[j.gocron.ID()] != j {
		return
	}
	j.backlog.start(s.started)
	if s.leader.check(s.started) == nil {
		s.lookBack(s.started, j)
	}
}

// lookBackAll looks for the ticks that no replica ran before this one was elected, or its clock was
// set right.
func (s *state) lookBackAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started == nil || s.leader.check(s.started) != nil {
		return
	}
	for _, j := range s.jobs {
		s.lookBack(s.started, j)
	}
}

// lookBack asks the nodes, in the background, which ticks of the job were missed, and whether it is
// paused. They know nothing of a job without a lease. Called with mu held.
func (s *state) lookBack(ctx context.Context, j *job) {
	if j.unlocked {
		return
	}
	turn := j.pauses.begin()
	s.reads.Go(func() { j.pauses.look(ctx, turn) })
	if j.cfg.catchUp != CatchUpNone {
		s.reads.Go(func() { j.backlog.addMissed(ctx) })
	}
}

// StopJobs is gocron's: it waits for runs, at most the stop timeout. Before that, ticks that wait
// are given up and the campaign ends, so that another replica leads until Start.
func (s *Scheduler) StopJobs() error {
	if s.none() {
		return nil
	}
	return s.stopWith(s.inner.StopJobs, false)
}

// StopJobsWithContext is StopJobs with a context.
func (s *Scheduler) StopJobsWithContext(ctx context.Context) error {
	if s.none() {
		return nil
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	return s.stopWith(func() error { return s.inner.StopJobsWithContext(ctx) }, false)
}

// Shutdown stops in order: no tick is begun any more; the leadership is given up, so that another
// replica runs what is due from now on; runs are told to end, and have the stop timeout for it, in
// which their leases are extended, so that no other replica begins the same jobs; each lease is
// released as its run ends. The lease of a run that does not end is not released: as long as the
// Quorum is open it is extended. The error then matches gocron.ErrStopJobsTimedOut and names the
// jobs. Close the Quorum afterwards, which lets such leases run out.
//
// Of a nil Scheduler, which comes with an error, there is nothing to stop, so a deferred Shutdown
// may stand before the check of the error.
func (s *Scheduler) Shutdown() error {
	if s.none() {
		return nil
	}
	return s.stopWith(s.inner.Shutdown, true)
}

// ShutdownWithContext is Shutdown with a context.
func (s *Scheduler) ShutdownWithContext(ctx context.Context) error {
	if s.none() {
		return nil
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	return s.stopWith(func() error { return s.inner.ShutdownWithContext(ctx) }, true)
}

// none reports whether the Scheduler is nil or zero.
func (s *Scheduler) none() bool { return s == nil || s.state == nil }

// stopWith stops what waits and the campaign, and then gocron, for good or until Start.
func (s *Scheduler) stopWith(stop func() error, forGood bool) error {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	s.asking.Lock()
	s.mu.Lock()
	s.down = s.down || forGood
	if s.stop != nil {
		s.stop()
		s.started, s.stop = nil, nil
	}
	jobs := s.list()
	s.mu.Unlock()
	s.asking.Unlock()
	s.refuseOrders()
	s.reads.Wait()
	for _, j := range jobs {
		j.backlog.stop()
	}
	// Each run has a lease of its own, so the next leader need not wait for it.
	if ended := s.leader.stopCampaign(); ended != nil {
		<-ended
	}
	defer s.teller.end() // runs go on until then
	defer s.forgetPauses()
	return s.tasks.annotate(stop())
}

// forgetPauses is for a replica that runs no ticks any more.
func (s *state) forgetPauses() {
	s.mu.Lock()
	jobs := s.list()
	s.mu.Unlock()
	for _, j := range jobs {
		j.pauses.forget(s.cfg.context)
	}
}

// newKey returns the key of a job's lease. It refuses a name that another job than that of the id
// has.
func (s *state) newKey(name string, id uuid.UUID) (string, error) {
	key, err := s.cfg.key(name)
	if err != nil {
		return "", err
	}
	for _, other := range s.inner.Jobs() {
		if other.Name() == name && other.ID() != id {
			return "", &OptionError{Option: "gocron.WithName", Reason: fmt.Sprintf("there is a job of the name %q already: the two would exclude each other", name)}
		}
	}
	return key, nil
}

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
		j.backlog.stop()
		j.pauses.forget(s.cfg.context)
	}
}

// Conflicts returns the conflicts of all jobs that this replica has found since they were made, by
// the jobs' names. See Conflict. It does no I/O.
func (s *Scheduler) Conflicts() []Conflict {
	s.mu.Lock()
	jobs := s.list()
	s.mu.Unlock()
	var found []Conflict
	for _, j := range jobs {
		found = append(found, j.labels.conflicts()...)
	}
	slices.SortFunc(found, func(a, b Conflict) int { return strings.Compare(a.Job+"\x00"+a.Other, b.Job+"\x00"+b.Other) })
	return found
}

// skip reports a tick that is not run.
func (s *state) skip(ctx context.Context, e *SkipError) {
	s.teller.skip(e)
	level := slog.LevelWarn
	if e.Expected() || e.Reason == SkipAhead { // that the clock is wrong was said
		level = slog.LevelDebug
	}
	s.cfg.logger.Log(ctx, level, "scheduler: tick is skipped", "job", e.Job, "tick", e.Tick, "reason", string(e.Reason), "by", e.By, "pending", e.Pending, "error", e.Err)
	if t := s.cfg.tracer.skip; t != nil {
		t.TraceSkip(ctx, TraceSkipData{Skip: e})
	}
}
