package scheduler

import (
	"cmp"
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
	place    float64   // among the replicas that ask for a tick ahead of its time; see placeOf
	cardAt   time.Time // guarded by Scheduler.mu; when its card is to be written again

	mu         sync.Mutex
	ctx        context.Context // guarded by mu, as are the next fields; ends when the job stops; nil while it is stopped
	cancel     context.CancelFunc
	timer      *time.Timer // calls wake; nil before the first sleep
	busy       bool        // a turn goes on
	again      bool        // the job was woken meanwhile
	view       view
	adopted    bool          // view.table is made of def, and this replica need not write def
	replaced   string        // the definition that this replica replaced last; empty for none
	otherSince time.Time     // when another definition was first seen; zero for none
	ownSince   time.Time     // when def was seen again after that; zero if it was not
	patience   time.Duration // how long another definition may stand, see watch
	conflict   *Conflict
	never      unbegun  // the last grant that was not acted on
	untold     int      // calls of tell that the one under way stands for; 0 if none is
	told       JobTrace // what the tracer was told last; owned by the call of tell under way

	// Owned by the turn that goes on. There is one at a time.
	triedAhead time.Time // the tick that was asked for ahead of its time
	failures   int       // requests to the nodes that failed in a row
	failed     Reason    // the reason of the last failure
	refusals   int       // granted runs in a row whose tasks were not called
}

var _ gocron.Job = (*job)(nil)

// newJob makes a job of the arguments of NewJob, and refuses those that do not fit several
// replicas.
func (s *Scheduler) newJob(definition gocron.JobDefinition, task gocron.Task, opts []gocron.JobOption) (*job, error) {
	d, err := s.definitions.Read(definition, task, slices.Concat(s.cfg.jobs, opts)...)
	if err != nil {
		return nil, err
	}
	key, nameless := keyOf(d.Name)
	cfg, unfit := newJobConfig(d)
	def, untimed := timetable.New(d.Spec)
	if err := cmp.Or(nameless, unfit, untimed); err != nil {
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
// removed or replaced meanwhile, or is started already: NewJob and Start may both call it.
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
	j.wake()
}

// stop ends what start began. gocron tells a run that goes on to end.
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

// minKeep is the least time for which the nodes remember how far a job has come. overKeep is that
// time for a job whose runs are counted, which must not begin anew.
const (
	minKeep  = 24 * time.Hour
	overKeep = 400 * 24 * time.Hour
)

// keep returns for how long the nodes remember the job: at least until it should have run twice,
// and then its window and a day.
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

// current returns the job that has j's identifier now, which after an Update is another one.
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

// RunNow begins a run now, on this replica. The run excludes other runs of the job on all replicas.
// It is no tick of the schedule: it does not take the place of a tick, and is not caught up.
//
// RunNow returns nil when the run begins, and does not wait for its end. In contrast to gocron's
// own it returns an error if there is no run. The error matches gocron.ErrJobNotFound for a job
// that was removed, or of which all counted runs have begun (gocron.WithLimitedRuns). Otherwise it
// is a *SkipError, mostly with one of these Reasons:
//
//   - SkipOverlap: a run of the job goes on, on any replica.
//   - SkipNotLeader: this replica does not lead (WithElection).
//   - SkipLimit: no place is free (gocron.WithLimitConcurrentJobs).
//   - SkipNoQuorum, SkipTimeout, SkipSplit or SkipQuarantined: the lease could not be acquired
//     within a second, or gocron was busy for that long.
//   - SkipStopped: the Scheduler is not started (the error then matches ErrNotRunning) or is being
//     stopped, or the job's own context has ended (gocron.WithContext).
//
// Only the caller is told of the error: tracers and gocron's listeners are not.
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

// NextRun does what gocron's does. It returns the zero time if nothing is scheduled, and
// gocron.ErrSchedulerBusy after Shutdown.
func (j *job) NextRun() (time.Time, error) {
	runs, err := j.NextRuns(1)
	return append(runs, time.Time{})[0], err
}

// NextRuns does what gocron's does. It returns fewer times if there are no more, or if they are not
// known: of a random job, and of one whose interval counts from the end of a run, only the next
// time is known.
func (j *job) NextRuns(n int) ([]time.Time, error) {
	now, err := j.current()
	if err != nil {
		return nil, err
	}
	return now.next(now.known(), n), nil
}

// now returns the time by which people are told of the job: that of the nodes. A job that runs
// everywhere goes by this replica's clock.
func (j *job) now() time.Time {
	if j.unlocked {
		return j.s.now()
	}
	return j.s.nodesNow()
}

// next returns up to n next ticks, as far as they are known.
func (j *job) next(known view, n int) (times []time.Time) {
	now := j.now()
	if limit := j.cfg.policy.Limit; limit > 0 {
		n = min(n, limit-known.rec.Runs)
	}
	table := known.table
	if table == nil {
		table = j.def.Table(now) // of no replica: only the phase of an interval is not known yet
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

// Jobs does what gocron's does.
func (s *Scheduler) Jobs() []gocron.Job {
	jobs := s.executor.Gocron().Jobs()
	for i, j := range jobs {
		jobs[i] = cmp.Or(s.executor.Shown(j.ID()), j)
	}
	return jobs
}

// JobsWaitingInQueue returns how many ticks wait for a place (gocron.WithLimitConcurrentJobs).
func (s *Scheduler) JobsWaitingInQueue() int {
	if s.limit == nil {
		return 0
	}
	return int(s.limit.waiting.Load())
}

// RemoveJob does what gocron's does. A run that goes on is told to end and keeps its lease until it
// has ended. Ticks that wait are given up. The record of how far the job has come stays on the
// nodes.
func (s *Scheduler) RemoveJob(id uuid.UUID) error {
	defer s.prune()
	s.installing.Lock()
	defer s.installing.Unlock()
	return s.executor.Gocron().RemoveJob(id)
}

// removeOver removes a job that is over, but not the job that an Update has put in its place.
func (s *Scheduler) removeOver(j *job) {
	defer s.prune()
	s.installing.Lock()
	defer s.installing.Unlock()
	if !j.IsRemoved() {
		_ = s.executor.Gocron().RemoveJob(j.ID()) // an error means that the Scheduler was shut down meanwhile
	}
}

// RemoveByTags does what gocron's does; see RemoveJob.
func (s *Scheduler) RemoveByTags(tags ...string) {
	defer s.prune()
	s.installing.Lock()
	defer s.installing.Unlock()
	s.executor.Gocron().RemoveByTags(tags...)
}

// prune forgets jobs that gocron has removed.
func (s *Scheduler) prune() {
	s.executor.Gocron().Jobs() // its answer means that gocron has carried out earlier requests
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

// Conflicts returns the conflicts that this replica has found since its jobs were made, sorted by
// the jobs' names. See Conflict. It does no I/O.
func (s *Scheduler) Conflicts() (found []Conflict) {
	for _, j := range s.all() {
		if c := j.knows().Conflict; c != nil {
			found = append(found, *c)
		}
	}
	return found
}

// Overdue returns the names of the jobs that have not succeeded within the time of
// WithSucceedWithin, as far as this replica knows. It does no I/O. Do not use it for readiness: a
// restart does not help such a job.
func (s *Scheduler) Overdue() (late []string) {
	for _, j := range s.all() {
		if at := j.knows().OverdueAt; !at.IsZero() && j.now().After(at) {
			late = append(late, j.name)
		}
	}
	return late
}

// all returns the jobs, sorted by their names.
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
