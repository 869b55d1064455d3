package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/tenure-dev/tenure/elector"
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
		q: q, cfg: cfg, jobs: make(map[uuid.UUID]*job), agenda: agenda.New(cfg.wall), limit: newLimit(set),
		pauseAll: pause.Of(q, ""),
	}
	s.reader = &reader{all: s.pauseAll, work: &s.work}
	s.clock.s = s
	s.teller = newTeller(s)
	if s.definitions, err = gocronx.NewReader(cfg.location); err != nil {
		return nil, invalidGocron(err)
	}
	if cfg.election != "" {
		if s.free, err = elections.take(q, cfg.election); err != nil {
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

// names are those of elections that Schedulers of this process take part in: two would take the
// leadership from each other, and one of them would run nothing.
type names struct {
	mu    sync.Mutex
	taken map[electionOf]bool // guarded by mu
}

type electionOf struct {
	q    *redlock.Quorum
	name string
}

var elections = names{taken: make(map[electionOf]bool)}

// take takes a name until free is called.
func (n *names) take(q *redlock.Quorum, name string) (free func(), err error) {
	of := electionOf{q, name}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.taken[of] {
		return nil, &OptionError{Option: "WithElection", Reason: fmt.Sprintf("another Scheduler of this Quorum takes part in the election %q, and the leader of the two "+
			"would run its jobs alone: use one Scheduler, or name another election", name)}
	}
	n.taken[of] = true
	return sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.taken, of)
	}), nil
}

// now is the time of the wall clock.
func (s *state) now() time.Time { return s.agenda.Now() }

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
	old = s.jobs[j.gocron.ID()]
	s.jobs[j.gocron.ID()] = j
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

// list is called with mu held.
func (s *state) list() []*job { return slices.Collect(maps.Values(s.jobs)) }

// named returns the job of that name, or nil.
func (s *state) named(name string) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if j.name == name {
			return j
		}
	}
	return nil
}

// kickAll has all jobs think: this replica was elected.
func (s *state) kickAll() {
	s.mu.Lock()
	jobs := s.list()
	s.mu.Unlock()
	for _, j := range jobs {
		j.kick()
	}
}

// forgetPauses is for a replica that runs no ticks any more.
func (s *state) forgetPauses() {
	s.mu.Lock()
	jobs := s.list()
	s.mu.Unlock()
	for _, j := range jobs {
		j.pauses.forget(context.Background())
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

// workers is a group of goroutines that may be waited for while others are added.
type workers struct {
	mu sync.Mutex
	n  int           // guarded by mu
	no chan struct{} // guarded by mu; closed when n is zero; nil then
}

// Go calls f in a goroutine.
func (w *workers) Go(f func()) {
	w.mu.Lock()
	if w.n++; w.no == nil {
		w.no = make(chan struct{})
	}
	w.mu.Unlock()
	go func() {
		defer w.done()
		f()
	}()
}

func (w *workers) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n--; w.n == 0 {
		close(w.no)
		w.no = nil
	}
}

// Wait waits until none is left, for a time at most, and reports whether that is so.
func (w *workers) Wait(most time.Duration) bool {
	w.mu.Lock()
	no := w.no
	w.mu.Unlock()
	if no == nil {
		return true
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-no:
		return true
	case <-timer.C:
		return false
	}
}

// Jobs is gocron's.
func (s *Scheduler) Jobs() []gocron.Job {
	jobs := s.executor.Gocron().Jobs()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, j := range jobs {
		if own := s.jobs[j.ID()]; own != nil {
			jobs[i] = &publicJob{own.gocron, own}
		}
	}
	return jobs
}

// JobsWaitingInQueue is gocron's: how many ticks wait for a place (gocron.WithLimitConcurrentJobs).
func (s *Scheduler) JobsWaitingInQueue() int { return s.limit.waitingTicks() }

// RemoveJob is gocron's. A run that goes on is told to end and keeps its lease until it has; ticks
// that wait are given up. How far the job has come stays on the nodes.
func (s *Scheduler) RemoveJob(id uuid.UUID) error {
	defer s.prune()
	return s.executor.Gocron().RemoveJob(id)
}

// RemoveByTags is gocron's; see RemoveJob.
func (s *Scheduler) RemoveByTags(tags ...string) {
	defer s.prune()
	s.executor.Gocron().RemoveByTags(tags...)
}

// isOver removes a job that has no tick left.
func (s *state) isOver(j *job) {
	defer s.prune()
	_ = s.executor.Gocron().RemoveJob(j.gocron.ID()) // it was removed meanwhile
}

// prune forgets jobs that gocron has forgotten.
func (s *state) prune() {
	there := make(map[uuid.UUID]bool)
	for _, j := range s.executor.Gocron().Jobs() {
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
		j.stop()
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
		j.mu.Lock()
		if j.conflict != nil {
			found = append(found, *j.conflict)
		}
		j.mu.Unlock()
	}
	slices.SortFunc(found, func(a, b Conflict) int { return strings.Compare(a.Job, b.Job) })
	return found
}

// Overdue returns the names of the jobs that have not succeeded for as long as WithSucceedWithin
// says, as far as this replica knows. It does no I/O, and is no matter of readiness: a restart
// heals nothing.
func (s *Scheduler) Overdue() []string {
	s.mu.Lock()
	jobs := s.list()
	s.mu.Unlock()
	var late []string
	for _, j := range jobs {
		if at := j.state().OverdueAt; !at.IsZero() && s.now().After(at) {
			late = append(late, j.name)
		}
	}
	slices.Sort(late)
	return late
}
