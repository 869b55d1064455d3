package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/internal/orders"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler/internal/agenda"
	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

var _ gocron.Scheduler = (*Scheduler)(nil)

// Scheduler is a gocron.Scheduler for a service with several replicas: each tick of a job is run
// once, by one of them, and runs of one job never overlap, on whatever replica. Make one with New
// on each replica, with the same jobs. docs/scheduling.md says what gocron's options mean with it.
//
// It is safe for concurrent use.
type Scheduler struct {
	*state
}

// state is what a Scheduler consists of.
type state struct {
	q           *redlock.Quorum
	cfg         *config
	definitions *gocronx.Reader
	executor    *gocronx.Executor
	agenda      *agenda.Agenda
	leader      *leadership // nil without an election
	limit       *limit      // nil without gocron.WithLimitConcurrentJobs
	reader      *reader
	pauseAll    register.Register
	teller      *teller
	taker       *orders.Taker // guarded by lifecycle; nil while stopped, and without orders
	clock       clockWatch
	free        func() // gives the election's name back

	lifecycle  sync.Mutex // held by Start, StopJobs and Shutdown
	installing sync.Mutex // held by NewJob and Update, so that no two jobs get one name
	mu         sync.Mutex
	down       bool               // guarded by mu; Shutdown was called
	jobs       map[uuid.UUID]*job // guarded by mu
	names      map[string]*job    // guarded by mu; the same
	started    context.Context    // guarded by mu; ends with StopJobs and Shutdown; nil while stopped
	stop       context.CancelFunc // guarded by mu
	work       workers            // turns, runs that were ordered, and the agenda
	unkeep     func()             // guarded by mu; ends register.Keep of the pause of all
}

// New makes a Scheduler on a Quorum, which stays the caller's: close it after Shutdown. It does no
// I/O. Errors are *OptionError, or gocron's own about its options.
func New(q *redlock.Quorum, opts ...Option) (*Scheduler, error) {
	if q == nil {
		return nil, &OptionError{Option: "q", Reason: "is nil: make a Quorum with redlock.Open"}
	}
	cfg, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	if err := checkLease(q, cfg.lease); err != nil {
		return nil, err
	}
	set, err := gocronx.ReadSettings(cfg.gocron...)
	if err != nil {
		return nil, invalidGocron(err)
	}
	if err := checkSettings(set); err != nil {
		return nil, err
	}
	s := &state{
		q: q, cfg: cfg, jobs: make(map[uuid.UUID]*job), names: make(map[string]*job), agenda: agenda.New(cfg.wall), limit: newLimit(set),
		pauseAll: pause.Of(q, ""),
	}
	s.reader = &reader{all: s.pauseAll, work: &s.work}
	s.clock.s = s
	s.teller = newTeller(s)
	if s.definitions, err = gocronx.NewReader(cfg.location); err != nil {
		return nil, invalidGocron(err)
	}
	if cfg.election != "" {
		if s.free, err = takeElection(q, cfg.election); err != nil {
			return nil, err
		}
		if s.leader, err = newLeadership(q, cfg, s.clock.ahead, s.kickAll, s.forgetPauses); err != nil {
			s.free()
			return nil, err
		}
	}
	// That has a goroutine until Shutdown, so nothing is refused after it.
	if s.executor, err = gocronx.NewExecutor(set, cfg.location, cfg.stopTimeout, func(job string) error {
		return &SkipError{Job: job, Reason: SkipStopped}
	}); err != nil {
		if s.free != nil {
			s.free()
		}
		return nil, err
	}
	cfg.logger.Info("scheduler: the time zone of schedules, which has to be the same on all replicas: see scheduler.WithLocation", "zone", zoneName(cfg.location))
	return &Scheduler{s}, nil
}

// checkSettings refuses options of gocron.NewScheduler that this package has to set itself.
func checkSettings(set *gocronx.Settings) error {
	for _, refused := range []struct {
		given          bool
		option, reason string
	}{
		{set.Elector, "gocron.WithDistributedElector", "gocron would not lock any job then: use WithElection"},
		{set.Locker, "gocron.WithDistributedLocker", "the Scheduler is its own locker: leave it out"},
		{set.Clock, "gocron.WithClock", "gocron times nothing here: test with testing/synctest and redlocktest"},
		{set.Location, "gocron.WithLocation", "gocron times nothing here: use WithLocation of this package"},
		{set.StopTimeout, "gocron.WithStopTimeout", "leases go by it too: use WithStopTimeout of this package"},
		{set.GlobalJobOptions, "gocron.WithGlobalJobOptions", "each job's options are looked at: use WithJobOptions of this package"},
	} {
		if refused.given {
			return &OptionError{Option: refused.option, Reason: refused.reason}
		}
	}
	return nil
}

// zoneName names a zone. time.Local is called so on every machine, and is told by its offsets in
// winter and in summer.
func zoneName(zone *time.Location) string {
	if zone != time.Local {
		return zone.String()
	}
	const layout = "-07:00"
	return "Local " + time.Date(2026, time.January, 1, 0, 0, 0, 0, zone).Format(layout) + time.Date(2026, time.July, 1, 0, 0, 0, 0, zone).Format(layout)
}

// now is the time of the wall clock, and steady that of one that never steps and counts a suspend.
func (s *state) now() time.Time        { return s.agenda.Now() }
func (s *state) steady() time.Duration { return bridge.Of(s.q).Now() }

// unfit is why this replica may run no ticks; nil if it may.
func (s *state) unfit(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return cmp.Or(s.clock.ahead(ctx), s.leader.check(ctx))
}

// Elector returns the elector of WithElection, for who leads and since when; nil without.
func (s *Scheduler) Elector() *elector.Elector {
	if s.none() || s.leader == nil {
		return nil
	}
	return s.leader.elector
}

// NewJob is gocron's, for a job with gocron.WithName: the name is what replicas agree on, and must
// not change between builds. The options are gocron's and those of this package: WithCatchUp,
// WithDelivery, WithOverlap, WithRetry and WithSucceedWithin.
//
// A task whose first parameter is a context gets one that ends, with the cause, when the job's
// lease or the leadership is lost, when the job is removed, and when the Scheduler stops;
// RunFromContext tells which run it is for. If the parameters begin with a context of your own, the
// task gets one with its values that ends with either. An error that the task returns is logged as
// a warning, at debug level if it is only that its context has ended. A panic is logged as an error
// with its stack and does not end the process.
//
// Errors are *OptionError for what does not fit several replicas, one that matches ErrNotRunning
// after Shutdown, and gocron's own.
func (s *Scheduler) NewJob(definition gocron.JobDefinition, task gocron.Task, opts ...gocron.JobOption) (gocron.Job, error) {
	return s.install(uuid.Nil, definition, task, opts)
}

// Update is gocron's, with the conditions of NewJob. A run that goes on is told to end and keeps
// its lease until it has. The ticks of a changed schedule count from now on.
func (s *Scheduler) Update(id uuid.UUID, definition gocron.JobDefinition, task gocron.Task, opts ...gocron.JobOption) (gocron.Job, error) {
	return s.install(id, definition, task, opts)
}

func (s *state) install(id uuid.UUID, definition gocron.JobDefinition, task gocron.Task, opts []gocron.JobOption) (gocron.Job, error) {
	s.mu.Lock()
	down := s.down
	s.mu.Unlock()
	if down {
		return nil, shutDown{}
	}
	j, d, err := s.newJob(definition, task, opts)
	if err != nil {
		return nil, err
	}
	old, err := s.exchange(id, j, d)
	if id != uuid.Nil {
		s.prune() // gocron removes the old job also if it refuses the new one
	}
	if err != nil {
		return nil, err
	}
	if old != nil {
		old.stop()
	}
	j.gocron.Register()
	if t := s.cfg.tracer.Job; t != nil {
		t(context.Background(), JobTrace{Job: j.name, Election: s.cfg.election})
	}
	s.mu.Lock()
	started, is := s.started, s.jobs[j.gocron.ID()] == j
	s.mu.Unlock()
	if started != nil && is {
		j.start(started)
	}
	return &publicJob{j.gocron, j}, nil
}

// exchange has gocron make a job, in the place of another one if id says so, which it returns.
func (s *state) exchange(id uuid.UUID, j *job, d *gocronx.Definition) (old *job, err error) {
	s.installing.Lock()
	defer s.installing.Unlock()
	if other := s.named(j.name); other != nil && other.gocron.ID() != id {
		return nil, &OptionError{Option: "gocron.WithName", Reason: fmt.Sprintf("there is a job of the name %q already: the two would exclude each other", j.name)}
	}
	if id == uuid.Nil {
		_, err = s.executor.NewJob(d, j.shown)
	} else {
		_, err = s.executor.Update(id, d, j.shown)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old = s.jobs[j.gocron.ID()]; old != nil {
		delete(s.names, old.name)
	}
	s.jobs[j.gocron.ID()], s.names[j.name] = j, j
	return old, nil
}

// Start is gocron's. It also begins to campaign (WithElection).
func (s *Scheduler) Start() {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	s.mu.Lock()
	if s.down || s.started != nil {
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.executor.Start()
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	s.started, s.stop = ctx, cancel
	s.unkeep = register.Keep(s.q, s.pauseAll)
	jobs := s.list()
	s.mu.Unlock()
	s.work.Go(func() { s.agenda.Run(ctx) })
	for _, j := range jobs {
		j.start(ctx)
	}
	s.leader.campaign(context.Background())
	s.teller.start()
	s.takeOrders()
}

// kickAll has all jobs think: this replica was elected.
func (s *state) kickAll() {
	for _, j := range s.all() {
		j.kick()
	}
}

// forgetPauses is for a replica that runs no ticks any more.
func (s *state) forgetPauses() {
	for _, j := range s.all() {
		j.pauses.become(context.Background(), PauseTrace{})
	}
}

// StopJobs is gocron's: it waits for runs, at most the stop timeout. Before that, ticks that wait
// are given up and the campaign ends, so that another replica leads until Start.
func (s *Scheduler) StopJobs() error {
	if s.none() {
		return nil
	}
	return s.stopWith(gocron.Scheduler.StopJobs, false)
}

// StopJobsWithContext is StopJobs with a context.
func (s *Scheduler) StopJobsWithContext(ctx context.Context) error {
	if s.none() {
		return nil
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	return s.stopWith(func(g gocron.Scheduler) error { return g.StopJobsWithContext(ctx) }, false)
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
	return s.stopWith(gocron.Scheduler.Shutdown, true)
}

// ShutdownWithContext is Shutdown with a context.
func (s *Scheduler) ShutdownWithContext(ctx context.Context) error {
	if s.none() {
		return nil
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	return s.stopWith(func(g gocron.Scheduler) error { return g.ShutdownWithContext(ctx) }, true)
}

// none reports whether the Scheduler is nil or zero.
func (s *Scheduler) none() bool { return s == nil || s.state == nil }

// stopWith stops the agenda and the campaign, and then gocron, for good or until Start.
func (s *state) stopWith(stop func(gocron.Scheduler) error, forGood bool) error {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	s.mu.Lock()
	s.down = s.down || forGood
	jobs, cancel, unkeep := s.list(), s.stop, s.unkeep
	s.started, s.stop, s.unkeep = nil, nil, nil
	s.mu.Unlock()
	if cancel != nil {
		cancel()
		unkeep()
	}
	for _, j := range jobs {
		j.stop()
	}
	s.refuseOrders()
	// Each run has a lease of its own, so the next leader need not wait for it.
	if ended := s.leader.stopCampaign(); ended != nil {
		<-ended
	}
	err := s.executor.Stop(forGood, stop)
	if err == nil && !s.work.Wait(s.cfg.stopTimeout) { // how runs ended is written
		err = fmt.Errorf("scheduler: how runs ended is still being written: %w", gocron.ErrStopJobsTimedOut)
	}
	s.teller.end()
	if forGood && s.free != nil {
		s.free()
	}
	if running := s.teller.jobs(); err != nil && len(running) > 0 {
		return fmt.Errorf("scheduler: still running: %q: %w", running, err)
	}
	return err
}
