package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/redlock"
)

// tickTolerance is how much before a tick its timer may fire, by the clock that is asked afterwards.
const tickTolerance = 5 * time.Millisecond

// maxNextRuns bounds how many ticks gocron is asked for: more than a day of seconds.
const maxNextRuns = 1 << 17

// job is what a Scheduler keeps about a job, beside gocron.
type job struct {
	s      *Scheduler
	name   string
	key    string
	cfg    jobConfig
	ticks  *ticker
	keep   time.Duration // how long the nodes remember its last tick
	open   bool          // runs everywhere: gocron.WithDisabledDistributedJobLocker
	made   chan struct{} // closed when gocron is set
	gocron gocron.Job    // read after made is closed
	chase  *chase

	ready   runs // leases that were acquired for ticks of the past, for the next Lock
	started runs // runs that Lock began, for their tasks

	mu     sync.Mutex
	last   time.Time   // guarded by mu; the last scheduled time that Lock was called for, or when scheduling began
	tick   time.Time   // guarded by mu; the last scheduled time that Lock was called for; zero since scheduling began
	owed   []time.Time // guarded by mu; scheduled times that have come, and that Lock was called for on behalf of another run
	manual int         // guarded by mu; calls of RunNow that Lock has not seen
	stray  int         // guarded by mu; calls of Lock to come for runs that were given up
}

type jobKey struct{}

// jobFrom returns the job from the context that gocron gives to Lock and to the task.
func jobFrom(ctx context.Context) *job {
	j, _ := ctx.Value(jobKey{}).(*job)
	return j
}

// locker is what gocron asks before each run.
type locker struct{ s *Scheduler }

// Lock begins a run, or returns a *SkipError.
func (l *locker) Lock(ctx context.Context, name string) (lock gocron.Lock, err error) {
	defer func() {
		if p := recover(); p != nil {
			lock, err = nil, recovered(ctx, l.s.cfg.logger, name, p)
		}
	}()
	j := jobFrom(ctx)
	if j == nil {
		return nil, &OptionError{Option: "gocron.WithContext", Reason: "the job's context is not the one that the Scheduler gave it"}
	}
	r, skip := j.begin(ctx)
	if skip != nil {
		l.s.skip(ctx, skip)
		return nil, skip
	}
	return r, nil
}

// begin acquires the lease of the run that is due.
func (j *job) begin(ctx context.Context) (*run, *SkipError) {
	if r := j.ready.take(func(r *run) bool { return r.lease.Err() == nil }); r != nil {
		j.remember()
		r.announce()
		return r, nil
	}
	scheduled, missed, known, err := j.due(ctx)
	if err != nil {
		return nil, &SkipError{Job: j.name, Reason: SkipOther, Err: err}
	}
	if scheduled.IsZero() {
		return j.beginManual(ctx)
	}
	tick := j.ticks.of(scheduled)
	notLeader := j.s.leader.check(ctx)
	j.chase.missed(missed, notLeader != nil)
	if notLeader != nil {
		return nil, j.skip(tick, notLeader)
	}
	if j.chase.waitsFor(tick) {
		return nil, &SkipError{Job: j.name, Tick: tick, Reason: SkipOverlap, Pending: true}
	}
	lease, err := j.try(ctx, j.once(tick))
	if err != nil {
		return nil, j.skip(tick, err)
	}
	if err := j.s.leader.check(ctx); err != nil {
		_ = lease.Forgo(ctx) // the leadership was lost meanwhile
		return nil, j.skip(tick, err)
	}
	if j.defers(ctx, lease, quarry{tick: tick, until: tick.Add(j.cfg.window)}, known) {
		return nil, &SkipError{Job: j.name, Tick: tick, Reason: SkipOverlap, Pending: true}
	}
	return j.newRun(lease, Run{Job: j.name, Tick: scheduled, Attempt: lease.Attempt()}), nil
}

// defers gives the lease of a tick back if others are to be run before it, and goes after them all.
func (j *job) defers(ctx context.Context, lease *redlock.Lease, q quarry, known time.Time) bool {
	missed, err := j.missedBefore(lease, q.tick, known)
	if err != nil {
		j.s.cfg.logger.WarnContext(ctx, "scheduler: cannot tell which ticks were missed: none is caught up", "job", j.name, "error", err)
	}
	if len(missed) == 0 || !j.chase.add(append(j.quarries(missed...), q)...) {
		return false
	}
	_ = lease.Forgo(ctx)
	return true
}

// skip explains why a tick is not run now, and goes after it if the job's policies say so.
func (j *job) skip(tick time.Time, err error) *SkipError {
	e := skipped(j.name, tick, tick.UnixMilli(), err)
	e.Pending = j.chase.after(tick, e.Reason)
	return e
}

// beginManual is for RunNow: it excludes other runs, and is no tick.
func (j *job) beginManual(ctx context.Context) (*run, *SkipError) {
	err := j.s.leader.check(ctx)
	var lease *redlock.Lease
	if err == nil {
		lease, err = j.try(ctx)
	}
	if err != nil {
		return nil, skipped(j.name, time.Time{}, 0, err)
	}
	return j.newRun(lease, Run{Job: j.name, Attempt: 1}), nil
}

// due returns the scheduled time that Lock is called for: the latest one that has come and that Lock was not called for before. It is
// zero for a run that RunNow asked for. missed are earlier ones for which Lock was not called; known is the one before it.
func (j *job) due(ctx context.Context) (tick time.Time, missed []time.Time, known time.Time, err error) {
	select {
	case <-j.made:
	case <-ctx.Done():
		return time.Time{}, nil, known, ctx.Err()
	}
	now := j.s.cfg.clock.Now().Add(tickTolerance)
	runs, err := j.nextRuns(now)
	if err != nil {
		return time.Time{}, nil, known, fmt.Errorf("gocron does not tell the tick: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	runs = append(j.owed, runs...)
	slices.SortFunc(runs, time.Time.Compare)
	runs = slices.CompactFunc(runs, time.Time.Equal)
	j.owed = nil
	var early time.Time
	for _, at := range runs {
		switch {
		case !at.After(j.last):
		case at.After(now):
			if early.IsZero() {
				early = at
			}
		default:
			missed = append(missed, at)
		}
	}
	switch n := len(missed); {
	case n > 0:
		tick, missed = missed[n-1], missed[:n-1]
	case j.manual > 0:
		j.manual--
		return time.Time{}, nil, known, nil
	case j.stray > 0, j.s.limited, early.IsZero():
		j.stray = max(j.stray-1, 0)
		// A run that gocron had queued, and whose tick is gone: gocron.WithLimitConcurrentJobs.
		return time.Time{}, nil, known, errors.New("the tick has passed while the run waited for others")
	default:
		tick = early // the clock was set back after gocron had set its timer
	}
	if known = j.tick; len(missed) > 0 {
		known = missed[len(missed)-1]
	}
	j.last, j.tick = tick, tick
	return tick, missed, known, nil
}

// remember notes the ticks that are due when Lock hands out a run that was waiting. This call of Lock, or another one that is to
// come, is for them, and gocron forgets them when the run begins.
func (j *job) remember() {
	now := j.s.cfg.clock.Now().Add(tickTolerance)
	runs, err := j.nextRuns(now)
	if err != nil {
		return // gocron is busy, or the job is gone
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, at := range runs {
		if at.After(j.last) && !at.After(now) {
			j.owed = append(j.owed, at)
		}
	}
}

// nextRuns returns what gocron has scheduled, ascending, at least to the first tick after now. gocron keeps ticks of the past that it did not
// run.
func (j *job) nextRuns(now time.Time) ([]time.Time, error) {
	for n := 8; ; n *= 2 {
		runs, err := j.gocron.NextRuns(n)
		if err != nil {
			return nil, err
		}
		// A one-time job has a zero time after its last, and then all of them again.
		if end := slices.IndexFunc(runs, time.Time.IsZero); end >= 0 {
			return runs[:end], nil
		}
		if len(runs) < n || runs[n-1].After(now) || n >= maxNextRuns {
			return runs, nil
		}
	}
}

// expectStray notes that gocron may still call Lock for a run that was given up.
func (j *job) expectStray() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stray++
}

// restart is called before gocron begins, or begins again, to schedule: what it had scheduled before then is not due any more.
func (j *job) restart(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if now.After(j.last) {
		j.last = now
	}
	j.tick, j.owed, j.manual, j.stray = time.Time{}, nil, 0, 0
}

// once makes a lease that of a tick.
func (j *job) once(tick time.Time) redlock.LeaseOption {
	return redlock.WithOnceAt(tick, j.cfg.delivery, j.keep)
}

// try makes one attempt within the try timeout.
func (j *job) try(ctx context.Context, opts ...redlock.LeaseOption) (*redlock.Lease, error) {
	cfg := &j.s.cfg.commonConfig
	late := fmt.Errorf("the attempt took longer than %v (WithTryTimeout): %w", cfg.tryTimeout, redlock.ErrTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.tryTimeout, late)
	defer cancel()
	return j.s.q.TryAcquire(ctx, j.key, append(cfg.lease[:len(cfg.lease):len(cfg.lease)], opts...)...)
}

func (j *job) newRun(lease *redlock.Lease, what Run) *run {
	what.lease = lease
	r := &run{Run: what, job: j}
	r.announce()
	return r
}

// announce hands the run to the task that gocron is about to call.
func (r *run) announce() {
	r.job.s.running.add()
	r.job.started.add(r)
}

// drop forgets a run whose task was not called.
func (j *job) drop(r *run) { j.started.remove(r) }

// publicJob is a job as users see it.
type publicJob struct {
	gocron.Job
	job *job
}

// RunNow asks gocron for a run now. It excludes other runs of the job on all replicas, and is not a tick of the schedule: it neither
// takes one's place nor is it caught up. In contrast to gocron's own, it returns an error matching elector.ErrNotLeader on a replica that
// does not lead (WithElection), where nothing would be run.
func (p *publicJob) RunNow() error {
	s := p.job.s
	s.asking.RLock() // gocron hangs if it is asked while it is stopped
	defer s.asking.RUnlock()
	s.mu.Lock()
	started, j := s.started != nil, s.jobs[p.ID()]
	s.mu.Unlock()
	switch {
	case !started:
		return fmt.Errorf("scheduler: job %q cannot be run now: the Scheduler is not started: %w", p.job.name, gocron.ErrJobRunNowFailed)
	case j == nil:
		return gocron.ErrJobNotFound
	case !j.open:
		if err := s.leader.check(context.Background()); err != nil {
			return fmt.Errorf("scheduler: job %q cannot be run now on this replica: %w", j.name, err)
		}
	}
	j.mu.Lock()
	j.manual++
	j.mu.Unlock()
	err := p.Job.RunNow()
	if err != nil {
		j.mu.Lock()
		j.manual = max(j.manual-1, 0)
		j.mu.Unlock()
	}
	return err
}
