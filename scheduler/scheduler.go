package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bridge"
	"github.com/tenure-dev/tenure/internal/orders"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

var _ gocron.Scheduler = (*Scheduler)(nil)

// Scheduler is a gocron.Scheduler for a service with several replicas. One replica runs each tick
// of a job, once, and runs of one job never overlap, even on different replicas. Make one with New
// on each replica, with the same jobs. docs/scheduling.md says what gocron's options mean with it.
//
// It is safe for concurrent use.
type Scheduler struct {
	q           *redlock.Quorum
	cfg         *config
	definitions *gocronx.Reader
	executor    *gocronx.Executor
	monitor     gocron.SchedulerMonitor
	leader      *leadership // nil without an election
	limit       *limit      // nil without gocron.WithLimitConcurrentJobs
	readings    chan *reading
	gates       map[int]uint64 // how often the gate of each node had opened at the last report; owned by report
	pauseAll    register.Register
	taker       *orders.Taker  // guarded by lifecycle; nil while stopped, and without orders
	campaign    sync.WaitGroup // used under lifecycle only; the goroutine that campaigns
	unreport    func()         // guarded by lifecycle; ends the reports; nil while stopped, and without a card

	lifecycle  sync.Mutex // held by Start, StopJobs and Shutdown
	installing sync.Mutex // held while gocron makes or removes a job: no two jobs get one name, and the Executor knows each that is removed
	mu         sync.Mutex
	down       bool                  // guarded by mu; Shutdown was called
	jobs       map[string]*job       // guarded by mu; by their names
	started    context.Context       // guarded by mu; ends with StopJobs and Shutdown; nil while stopped
	stop       context.CancelFunc    // guarded by mu
	work       *sync.WaitGroup       // guarded by mu; goroutines begun since Start, see run
	due        map[time.Time]*peers  // guarded by mu; runs that are about to begin, by when
	running    map[*run]struct{}     // guarded by mu; runs whose tasks are at work
	skips      map[skipped]SkipError // guarded by mu; to be told; at most maxSkips
	clock      string                // guarded by mu; ErrorType of the clock's last logged error; empty for none
}

// New makes a Scheduler on a Quorum. The caller closes the Quorum, after Shutdown, which also ends
// the goroutines of a Scheduler that was never started. New does no I/O. Errors are *OptionError,
// or gocron's own about its options.
func New(q *redlock.Quorum, opts ...Option) (*Scheduler, error) {
	cfg, err := newConfig(q, "Option", opts, Option.apply)
	if err != nil {
		return nil, err
	}
	set, unset := gocronx.ReadSettings(cfg.gocron...)
	definitions, unread := gocronx.NewReader(cfg.location)
	if err := cmp.Or(checkLease(q, cfg.lease), unset, unread); err != nil {
		return nil, err
	}
	s := &Scheduler{
		q: q, cfg: cfg, definitions: definitions, limit: newLimit(set), monitor: set.Monitor, pauseAll: pause.Of(q, ""), readings: make(chan *reading),
		jobs: make(map[string]*job), due: make(map[time.Time]*peers), running: make(map[*run]struct{}), skips: make(map[skipped]SkipError), gates: make(map[int]uint64),
	}
	if cfg.election != "" {
		if s.leader, err = newLeadership(s); err != nil {
			return nil, err
		}
	}
	// The executor has a goroutine until Shutdown, so New must not fail after this.
	if s.executor, err = gocronx.NewExecutor(set, cfg.location, cfg.stopTimeout, func(job string) error {
		return &SkipError{Job: job, Reason: SkipStopped}
	}); err != nil {
		s.leader.free()
		return nil, err
	}
	cfg.logger.Info("scheduler: the time zone of schedules, which has to be the same on all replicas: see scheduler.WithLocation", "zone", zoneName(cfg.location))
	return s, nil
}

// zoneName names a zone. time.Local has the same name on every machine, so its offsets in winter
// and in summer are added.
func zoneName(zone *time.Location) string {
	if zone != time.Local {
		return zone.String()
	}
	return "Local " + time.Date(2026, time.January, 1, 0, 0, 0, 0, zone).Format("-07:00") + time.Date(2026, time.July, 1, 0, 0, 0, 0, zone).Format("-07:00")
}

// now returns the time of the wall clock. steady returns that of a clock that never steps, and that
// goes on while the machine is suspended.
func (s *Scheduler) now() time.Time        { return s.cfg.wall().Round(0) }
func (s *Scheduler) steady() time.Duration { return bridge.Of(s.q).Now() }

// nodesNow returns the time of the wall clock, or, if that is wrong, the time of the nodes' clocks.
// It does no I/O.
func (s *Scheduler) nodesNow() time.Time {
	now := s.now()
	if wrong, is := errors.AsType[*redlock.ClockError](s.q.CheckClock(now)); is {
		now = now.Add(-wrong.Ahead)
	}
	return now
}

// Elector returns the elector of WithElection, for example to ask which replica leads; nil without
// WithElection.
func (s *Scheduler) Elector() *elector.Elector {
	if s.none() || s.leader == nil {
		return nil
	}
	return s.leader.elector
}

// NewJob does what gocron's does, for a job with gocron.WithName. Replicas know the job by its
// name, which must not change between builds. The options are gocron's and those of this package:
// WithCatchUp, WithDelivery, WithOverlap, WithRetry and WithSucceedWithin.
//
// A task whose first parameter is a context gets a context that ends, with the cause, when the
// job's lease or the leadership is lost, when the job is removed, and when the Scheduler stops.
// RunFromContext returns the run of that context. If the parameters begin with a context of your
// own, the task gets a context that has its values, too, and ends with either. An error that the
// task returns is logged as a warning, or at debug level if it says only that the context has
// ended. A panic is logged as an error with its stack and does not end the process.
//
// Errors are an *OptionError for a definition or an option that does not fit several replicas, an
// error that matches ErrNotRunning after Shutdown, and gocron's own.
func (s *Scheduler) NewJob(definition gocron.JobDefinition, task gocron.Task, opts ...gocron.JobOption) (gocron.Job, error) {
	return s.install(uuid.Nil, definition, task, opts)
}

// Update does what gocron's does, with the conditions of NewJob. A run that goes on is told to end
// and keeps its lease until it has ended. The ticks of a changed schedule count from now on.
func (s *Scheduler) Update(id uuid.UUID, definition gocron.JobDefinition, task gocron.Task, opts ...gocron.JobOption) (gocron.Job, error) {
	return s.install(id, definition, task, opts)
}

func (s *Scheduler) install(id uuid.UUID, definition gocron.JobDefinition, task gocron.Task, opts []gocron.JobOption) (gocron.Job, error) {
	j, err := s.newJob(definition, task, opts)
	if err != nil {
		return nil, err
	}
	old, err := s.exchange(id, j)
	if id != uuid.Nil {
		s.prune() // gocron removes the old job even if it refuses the new one
	}
	switch {
	case errors.Is(err, gocronx.ErrStopped):
		return nil, fmt.Errorf("scheduler: the Scheduler has been shut down and takes no jobs: make another one with New: %w", ErrNotRunning)
	case err != nil:
		return nil, err
	case old != nil:
		old.stop()
	}
	j.Register()
	j.tell(context.Background())
	j.start()
	if j.IsRemoved() { // while NewJob went on
		s.prune()
	}
	return j, nil
}

// exchange has gocron make a job, and returns the job that had its name, if any. If id is not zero,
// the new job takes the place of the job with that id.
func (s *Scheduler) exchange(id uuid.UUID, j *job) (old *job, err error) {
	s.installing.Lock()
	defer s.installing.Unlock()
	if other := s.named(j.name); other != nil && other.ID() != id {
		return nil, &OptionError{Option: "gocron.WithName", Reason: fmt.Sprintf("there is a job of the name %q already: the two would exclude each other", j.name)}
	}
	if own := j.Definition.ID; own != uuid.Nil && own != id && s.executor.Shown(own) != nil {
		return nil, &OptionError{Option: "gocron.WithIdentifier", Reason: fmt.Sprintf("there is a job of the identifier %v already: use Update to replace it", own)}
	}
	if err := s.executor.Install(j.Job, id, j); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old = s.jobs[j.name]
	s.jobs[j.name] = j
	return old, nil
}

// Start does what gocron's does, and begins to campaign (WithElection).
func (s *Scheduler) Start() {
	if s.start() {
		s.monitor.SchedulerStarted()
	}
}

func (s *Scheduler) start() bool {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	s.mu.Lock()
	if s.down || s.started != nil {
		s.mu.Unlock()
		cancel()
		return false
	}
	earlier := s.work
	s.started, s.stop, s.work = ctx, cancel, new(sync.WaitGroup)
	s.mu.Unlock()
	if earlier != nil {
		s.run(earlier.Wait) // a stop that timed out has left goroutines
	}
	register.Keep(ctx, s.q, s.pauseAll)
	s.run(func() { s.watchClock(ctx) })
	s.run(func() { s.readAll(ctx) })
	for _, j := range s.all() {
		j.start()
	}
	if s.leader != nil {
		s.campaign.Go(func() {
			// Its errors are logged by the elector, or mean that the Quorum is closed.
			_ = s.leader.elector.Run(ctx, s.leader.lead)
		})
	}
	if !s.cfg.tell.NoCard {
		s.unreport = board.Of(s.q).Report(s.report)
	}
	if !s.cfg.tell.NoOrders {
		s.taker = &orders.Taker{Accept: s.accept, Logger: s.cfg.logger}
		s.taker.Start(s.q)
	}
	return true
}

// run calls f in a goroutine, for which StopJobs and Shutdown wait. It returns false, and does not
// call f, while the Scheduler is stopped.
func (s *Scheduler) run(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.started != nil {
		s.work.Go(f)
	}
	return s.started != nil
}

// life returns the context that ends with StopJobs and Shutdown; nil while the Scheduler is
// stopped.
func (s *Scheduler) life() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// wakeAll begins a turn of each job, because the leadership has begun or ended.
func (s *Scheduler) wakeAll() {
	for _, j := range s.all() {
		j.wake()
	}
}

// StopJobs does what gocron's does: it waits for runs, at most the stop timeout. Before that, it
// gives up ticks that wait, and ends the campaign, so that another replica leads until Start.
func (s *Scheduler) StopJobs() error { return s.StopJobsWithContext(context.Background()) }

// StopJobsWithContext is StopJobs, but waits no longer than until ctx ends.
func (s *Scheduler) StopJobsWithContext(ctx context.Context) error { return s.stopWith(ctx, false) }

// Shutdown begins no tick any more. It tells runs to end, and gives the leadership up, so that
// another replica runs the ticks that are due from now on. Then it waits for the runs, at most the
// stop timeout. While a run goes on its lease is extended, so that no other replica begins the same
// job. Each lease is released as its run ends.
//
// If a run does not end in time, its lease is not released: it is extended as long as the Quorum is
// open. The error then matches gocron.ErrStopJobsTimedOut and names the jobs. Close the Quorum
// afterwards, which lets such leases run out.
//
// Shutdown of a nil Scheduler, which New returns with an error, does nothing. So a deferred
// Shutdown may stand before the check of the error.
func (s *Scheduler) Shutdown() error { return s.ShutdownWithContext(context.Background()) }

// ShutdownWithContext is Shutdown, but waits for runs no longer than until ctx ends. With nodes
// that do not answer it may take two node timeouts more.
func (s *Scheduler) ShutdownWithContext(ctx context.Context) error { return s.stopWith(ctx, true) }

// none reports whether the Scheduler is nil or zero.
func (s *Scheduler) none() bool { return s == nil || s.q == nil }

// stopWith ends what Start has begun: for good, or until the next Start.
func (s *Scheduler) stopWith(ctx context.Context, forGood bool) error {
	if s.none() {
		return nil
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	ran, err := s.end(ctx, forGood)
	if ran {
		s.monitor.SchedulerStopped()
		if forGood {
			s.monitor.SchedulerShutdown()
		}
	}
	if own := ctx.Err(); err != nil && own != nil && !errors.Is(err, own) { // it has the cause alone
		err = fmt.Errorf("%w: %w", err, own)
	}
	return err
}

// end is stopWith without the calls of the monitor. It reports whether the Scheduler was started.
func (s *Scheduler) end(ctx context.Context, forGood bool) (ran bool, err error) {
	s.lifecycle.Lock()
	defer s.lifecycle.Unlock()
	s.mu.Lock()
	cancel, work := s.stop, s.work
	s.started, s.stop, s.down = nil, nil, s.down || forGood
	s.mu.Unlock()
	for _, j := range s.all() {
		j.stop()
	}
	if ran = cancel != nil; ran {
		cancel() // runs are told to end
	}
	if s.taker != nil {
		s.taker.Close()
		s.taker = nil
	}
	s.campaign.Wait() // each run has a lease of its own, so the next leader need not wait for it
	ctx, cancel = context.WithTimeoutCause(ctx, s.cfg.stopTimeout, gocron.ErrStopJobsTimedOut)
	defer cancel()
	err = s.wait(ctx, work)
	if s.unreport != nil {
		s.unreport()
		s.unreport = nil
	}
	if !forGood {
		return ran, err
	}
	s.leader.free()
	s.mu.Lock()
	clear(s.jobs)
	s.mu.Unlock()
	if err != nil {
		cancel() // gocron is not waited for any longer
	}
	return ran, cmp.Or(err, s.executor.Shutdown(ctx))
}

// wait waits until runs have ended and their ends are written, or until ctx ends.
func (s *Scheduler) wait(ctx context.Context, work *sync.WaitGroup) error {
	if work == nil {
		return nil
	}
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	var running []string
	for _, r := range s.runs(func(*run) bool { return true }) {
		running = append(running, r.job.name)
	}
	if slices.Sort(running); len(running) > 0 {
		return fmt.Errorf("scheduler: still running: %q: %w", slices.Compact(running), context.Cause(ctx))
	}
	return fmt.Errorf("scheduler: a listener blocks, or how runs ended is still being written: %w", context.Cause(ctx))
}
