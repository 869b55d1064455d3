package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/tenure-dev/tenure/internal/joblog"
	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/internal/register"
	"github.com/tenure-dev/tenure/internal/timetable"
	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

// job is a job of a Scheduler. Users see it as a gocron.Job.
type job struct {
	*gocronx.Job
	s        *Scheduler
	name     string
	key      string // of its lease
	cfg      jobConfig
	def      joblog.Definition
	unlocked bool // runs everywhere: gocron.WithDisabledDistributedJobLocker
	record   register.Register
	pause    register.Register
	place    float64   // among the replicas that ask for a tick ahead of its time
	cardAt   time.Time // guarded by Scheduler.mu; when its card is to be told again

	mu         sync.Mutex
	ctx        context.Context // guarded by mu, as what follows; ends when the job stops; nil while it is stopped
	cancel     context.CancelFunc
	timer      *time.Timer // calls wake; nil before the first sleep
	busy       bool        // a turn goes on
	again      bool        // the job was woken meanwhile
	view       view
	adopted    bool      // view.table is that of def, and this replica need not write it
	replaced   string    // the definition that this replica has replaced last; empty for none
	otherSince time.Time // when another definition was seen first; zero for none
	conflict   *Conflict
	never      unbegun  // the last grant that was not acted on
	untold     int      // calls of tell, while one of them tells
	told       JobTrace // what a tracer was told last; of whoever tells

	// Of the turn that goes on, of which there is one at a time.
	triedAhead time.Time // the tick that was asked for ahead of its time
	failures   int       // of the nodes, in a row
	failed     Reason    // why, of the last of them
	refusals   int       // runs in a row that were granted, and whose tasks were not called
}

var _ gocron.Job = (*job)(nil)

// newJob reads what NewJob was asked for, and refuses what does not fit several replicas.
func (s *Scheduler) newJob(definition gocron.JobDefinition, task gocron.Task, opts []gocron.JobOption) (*job, error) {
	d, err := s.definitions.Read(definition, task, slices.Concat(s.cfg.jobs, opts)...)
	if err != nil {
		return nil, err
	}
	key, err := keyOf(d.Name)
	if err != nil {
		return nil, err
	}
	cfg, err := newJobConfig(d)
	if err != nil {
		return nil, err
	}
	def, err := timetable.New(d.Spec)
	if err != nil {
		return nil, err
	}
	j := &job{
		Job: gocronx.NewJob(d), s: s, name: d.Name, key: key, cfg: cfg, def: def, unlocked: d.WithoutLocking,
		pause: pause.Of(s.q, key), place: placeOf(d.Name, s.q.Identity()),
	}
	j.record = register.Of(s.q, key, keep(def, cfg.policy, s.now()))
	return j, nil
}

// start has the job's ticks run while the Scheduler is started. It does nothing if the job was
// removed or replaced meanwhile, or NewJob and Start both call it.
func (j *job) start() {
	j.mu.Lock()
	life := j.s.life()
	if life == nil || j.s.named(j.name) != j || j.ctx != nil && j.ctx.Err() == nil {
		j.mu.Unlock()
		return
	}
	j.ctx, j.cancel = context.WithCancel(life)
	ctx := j.ctx
	j.view.readAt, j.adopted = time.Time{}, j.adopted && !j.unlocked
	j.mu.Unlock()
	if !j.unlocked {
		register.Keep(ctx, j.s.q, j.record, j.pause)
	}
	j.kick()
}

// stop ends that. A run that goes on is told by gocron.
func (j *job) stop() {
	j.mu.Lock()
	if j.cancel != nil {
		j.cancel()
	}
	if j.timer != nil {
		j.timer.Stop()
	}
	j.ctx, j.cancel = nil, nil
	j.mu.Unlock()
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
func keep(def joblog.Definition, policy joblog.Policy, now time.Time) time.Duration {
	if policy.Limit > 0 {
		return overKeep
	}
	gap, table := overKeep, def.Table(now)
	if first := table.Next(now); !first.IsZero() {
		if second := table.Next(first); !isChain(table) && second.After(first) {
			gap = min(2*second.Sub(now), MaxSpan)
		} else {
			gap = min(first.Sub(now)+overKeep, MaxSpan)
		}
	}
	return minKeep + max(gap, min(2*def.Rest, MaxSpan)) + policy.Window
}

// local returns a time in the Scheduler's location.
func (s *Scheduler) local(at time.Time) time.Time {
	if at.IsZero() {
		return time.Time{}
	}
	return at.In(s.cfg.location)
}

// current is the job that has j's identifier now, after an Update.
func (j *job) current() (*job, error) {
	now, ok := j.s.executor.Shown(j.ID()).(*job)
	switch {
	case j.s.executor.IsDown():
		return nil, gocron.ErrSchedulerBusy
	case !ok:
		return nil, gocron.ErrJobNotFound
	}
	return now, nil
}

// RunNow begins a run now, on this replica. It excludes other runs of the job on all replicas, and
// is not a tick of the schedule: it neither takes one's place nor is it caught up.
//
// It returns nil when the run begins, and does not wait for its end. In contrast to gocron's own it
// returns an error if there is no run: a *SkipError whose Reason is SkipOverlap if a run of the job
// goes on, on whatever replica; SkipNotLeader on a replica that does not lead (WithElection);
// SkipLimit with gocron.WithLimitConcurrentJobs; SkipNoQuorum, SkipTimeout, SkipSplit or
// SkipQuarantined if the lease could not be acquired within a second, or gocron was busy for that
// long; and SkipStopped if the Scheduler is not started (then it matches ErrNotRunning) or is being
// stopped. A job that was removed is gocron.ErrJobNotFound. The error is for the caller: tracers
// and gocron's listeners are not told of it.
func (j *job) RunNow() error {
	ctx := j.s.life()
	if ctx == nil {
		return &SkipError{Job: j.name, Reason: SkipStopped, Err: fmt.Errorf("%w: %w", ErrNotRunning, gocron.ErrJobRunNowFailed)}
	}
	now, err := j.current()
	if err == nil {
		_, err = now.runNow(ctx, ownOrder)
	}
	if err == nil || errors.Is(err, gocron.ErrJobNotFound) {
		return err
	}
	return newSkipError(j.name, time.Time{}, err)
}

// NextRun is gocron's: zero if nothing is scheduled, gocron.ErrSchedulerBusy after Shutdown.
func (j *job) NextRun() (time.Time, error) {
	runs, err := j.NextRuns(1)
	return append(runs, time.Time{})[0], err
}

// NextRuns is gocron's. It returns fewer times if there are no more, or if they are not known: of a
// random job, or one whose interval counts from the end of a run, only the next is.
func (j *job) NextRuns(n int) ([]time.Time, error) {
	now, err := j.current()
	if err != nil {
		return nil, err
	}
	return now.next(now.known(), n), nil
}

// next returns the next ticks, as far as they are known.
func (j *job) next(known view, n int) (times []time.Time) {
	now := j.s.now()
	if limit := j.cfg.policy.Limit; limit > 0 {
		n = min(n, limit-known.rec.Runs)
	}
	table := known.table
	if table == nil {
		table = j.def.Table(now) // no replica's, but for the phase of an interval that nobody knows yet
	}
	if c, chain := table.(joblog.Chain); chain {
		if at := c.Within(known.rec.Next); n > 0 && !at.IsZero() {
			times = append(times, j.s.local(at))
		}
		return times
	}
	after := joblog.Later(now, table.From())
	for len(times) < n {
		at := table.Next(after)
		if !at.After(after) {
			break
		}
		times, after = append(times, j.s.local(at)), at
	}
	return times
}

// Jobs is gocron's.
func (s *Scheduler) Jobs() []gocron.Job {
	jobs := s.executor.Gocron().Jobs()
	for i, j := range jobs {
		if own := s.executor.Shown(j.ID()); own != nil {
			jobs[i] = own
		}
	}
	return jobs
}

// JobsWaitingInQueue is gocron's: how many ticks wait for a place (gocron.WithLimitConcurrentJobs).
func (s *Scheduler) JobsWaitingInQueue() int {
	if s.limit == nil {
		return 0
	}
	return int(s.limit.waiting.Load())
}

// RemoveJob is gocron's. A run that goes on is told to end and keeps its lease until it has; ticks
// that wait are given up. How far the job has come stays on the nodes.
func (s *Scheduler) RemoveJob(id uuid.UUID) error {
	defer s.prune()
	return s.executor.Gocron().RemoveJob(id)
}

// removeOver removes a job that is over, and not the one that an Update has put in its place.
func (s *Scheduler) removeOver(j *job) {
	defer s.prune()
	s.installing.Lock()
	defer s.installing.Unlock()
	if !j.IsRemoved() {
		_ = s.executor.Gocron().RemoveJob(j.ID()) // the Scheduler was shut down meanwhile
	}
}

// RemoveByTags is gocron's; see RemoveJob.
func (s *Scheduler) RemoveByTags(tags ...string) {
	defer s.prune()
	s.executor.Gocron().RemoveByTags(tags...)
}

// prune forgets jobs that gocron has forgotten.
func (s *Scheduler) prune() {
	s.executor.Gocron().Jobs() // when it has answered it has done what it was asked before
	for _, j := range s.all() {
		if !j.IsRemoved() {
			continue
		}
		s.mu.Lock()
		if s.jobs[j.name] == j {
			delete(s.jobs, j.name)
		}
		s.mu.Unlock()
		j.stop()
	}
}

// Conflicts returns the conflicts of all jobs that this replica has found since they were made, by
// the jobs' names. See Conflict. It does no I/O.
func (s *Scheduler) Conflicts() (found []Conflict) {
	for _, j := range s.all() {
		if c := j.knows().Conflict; c != nil {
			found = append(found, *c)
		}
	}
	return found
}

// Overdue returns the names of the jobs that have not succeeded for as long as WithSucceedWithin
// says, as far as this replica knows. It does no I/O, and is no matter of readiness: a restart
// heals nothing.
func (s *Scheduler) Overdue() (late []string) {
	for _, j := range s.all() {
		if at := j.knows().OverdueAt; !at.IsZero() && s.now().After(at) {
			late = append(late, j.name)
		}
	}
	return late
}

// all are the jobs, by their names.
func (s *Scheduler) all() []*job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.jobs), func(a, b *job) int { return strings.Compare(a.name, b.name) })
}

// named returns the job of that name, or nil.
func (s *Scheduler) named(name string) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs[name]
}
