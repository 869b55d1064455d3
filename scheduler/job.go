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

// tickTolerance is how much before a tick its timer may fire, by the clock that is asked
// afterwards.
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
	open   bool               // runs everywhere: gocron.WithDisabledDistributedJobLocker
	made   chan struct{}      // closed when gocron is set
	gocron gocron.Job         // read after made is closed
	as     gocron.JobSchedule // what NewJob was asked for
	chase  *chase
	labels *labels

	ready   runs // leases that were acquired for ticks of the past or for RunNow, for the next Lock
	started runs // runs that Lock began, for their tasks

	mu     sync.Mutex
	last   time.Time   // guarded by mu; the last scheduled time that Lock was called for, or when scheduling began
	tick   time.Time   // guarded by mu; the last scheduled time that Lock was called for; zero since scheduling began
	owed   []time.Time // guarded by mu; scheduled times that have come, and that Lock was called for on behalf of another run
	stray  int         // guarded by mu; calls of Lock to come for runs that were given up
	done   time.Time   // guarded by mu; ticks up to this one are granted to nobody any more
	latest time.Time   // guarded by mu; the last tick that this replica began to run
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
		close(r.taken)
		j.remember()
		r.announce()
		return r, nil
	}
	scheduled, missed, known, err := j.due(ctx)
	if err != nil {
		return nil, &SkipError{Job: j.name, Reason: SkipOther, Err: err}
	}
	tick := j.ticks.of(scheduled)
	notLeader := j.s.leader.check(ctx)
	j.chase.missed(ctx, missed, notLeader != nil)
	if notLeader != nil {
		return nil, j.skip(scheduled, notLeader)
	}
	if j.chase.waitsFor(scheduled) {
		return nil, &SkipError{Job: j.name, Tick: tick, Reason: SkipOverlap, Pending: true}
	}
	lease, err := j.try(ctx, j.once(tick)...) //mutant:tick-without-number
	if err != nil {
		return nil, j.skip(scheduled, err)
	}
	if err := j.s.leader.check(ctx); err != nil {
		_ = lease.Forgo(ctx) // the leadership was lost meanwhile
		return nil, j.skip(scheduled, err)
	}
	if j.defers(ctx, lease, j.wanted(scheduled, SkipMissed), known) {
		return nil, &SkipError{Job: j.name, Tick: tick, Reason: SkipOverlap, Pending: true}
	}
	j.began(tick)
	return j.newRun(lease, Run{Job: j.name, Tick: scheduled, Attempt: lease.Attempt()}), nil
}

// defers gives the lease of a tick back if others are to be run before it, and goes after them all.
func (j *job) defers(ctx context.Context, lease *redlock.Lease, q quarry, known time.Time) bool {
	missed := j.missedBefore(lease, q.tick, known)
	if len(missed) == 0 || !j.chase.add(append(j.quarries(SkipMissed, missed...), q)...) { //mutant:missed-tick-overtaken
		return false
	}
	_ = lease.Forgo(ctx)
	return true
}

// skip explains why a tick, scheduled for a time, is not run now, and goes after it if the job's
// policies say so.
func (j *job) skip(scheduled time.Time, err error) *SkipError {
	tick := j.ticks.of(scheduled)
	e := j.why(tick, err, true)
	e.Pending = j.chase.after(scheduled, e.Reason)
	if e.Expected() {
		j.ask()
	}
	return e
}

// due returns the scheduled time that Lock is called for: the latest one that has come and that
// Lock was not called for before. missed are earlier ones for which Lock was not called; known is
// the one before it.
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
	case j.stray > 0, j.s.limited, early.IsZero():
		j.stray = max(j.stray-1, 0)
		// A run that gocron had queued, and whose tick is gone: gocron.WithLimitConcurrentJobs.
		return time.Time{}, nil, known, errors.New("the tick has passed while the run waited for others")
	default:
		tick = early // the clock was set back after gocron had set its timer
	}
	missed = j.passedOver(tick, missed)
	if known = j.tick; len(missed) > 0 {
		known = missed[len(missed)-1]
	}
	j.last, j.tick = tick, tick
	return tick, missed, known, nil
}

// passedOver returns the ticks between the last one that Lock was called for and this one: those
// that gocron kept in its list, and those that it left out, because it sets its next timer only
// when Lock has returned, and passes over what came meanwhile. Called with mu held.
func (j *job) passedOver(tick time.Time, listed []time.Time) []time.Time {
	if j.tick.IsZero() {
		return listed
	}
	all := listed
	for _, at := range j.ticks.between(j.ticks.of(j.tick), j.ticks.of(tick).Add(-1)) {
		if !slices.ContainsFunc(listed, func(l time.Time) bool { return j.ticks.of(l).Equal(at) }) {
			all = append(all, at) //mutant:tick-left-out-by-gocron
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// remember notes the ticks that are due when Lock hands out a run that was waiting. This call of
// Lock, or another one that is to come, is for them, and gocron forgets them when the run begins.
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
			j.owed = append(j.owed, at) //mutant:tick-lost-beside-a-waiting-one
		}
	}
}

// nextRuns returns what gocron has scheduled, ascending, at least to the first tick after now if
// there is one. gocron keeps ticks of the past that it did not run.
func (j *job) nextRuns(now time.Time) ([]time.Time, error) {
	for n := 8; ; n *= 2 {
		runs, err := j.gocron.NextRuns(n)
		if err != nil {
			return nil, err
		}
		if runs = until(never, runs); len(runs) < n || runs[n-1].After(now) || n >= maxNextRuns {
			return j.local(runs), nil
		}
	}
}

// expectStray notes that gocron may still call Lock for a run that was given up.
func (j *job) expectStray() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stray++
}

// restart is called before gocron begins, or begins again, to schedule: what it had scheduled
// before then is not due any more.
func (j *job) restart(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if now.After(j.last) {
		j.last = now
	}
	j.tick, j.owed, j.stray = time.Time{}, nil, 0
}

// once makes a lease that of a tick. The nodes remember it for a day after the job should have run
// again, twice.
func (j *job) once(tick time.Time) []redlock.LeaseOption {
	keep := minKeep + 2*min(j.ticks.gap(tick), MaxSpan) + j.cfg.window // far below redlock.MaxKeep
	return []redlock.LeaseOption{redlock.WithOnceAt(tick, j.cfg.delivery, keep), redlock.WithLabel(j.labels.own)}
}

// try makes one attempt within the try timeout.
func (j *job) try(ctx context.Context, opts ...redlock.LeaseOption) (*redlock.Lease, error) {
	cfg := &j.s.cfg.commonConfig
	late := fmt.Errorf("the attempt took longer than %v (WithTryTimeout): %w", cfg.tryTimeout, redlock.ErrTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, cfg.tryTimeout, late)
	defer cancel()
	lease, err := j.s.q.TryAcquire(ctx, j.key, append(cfg.lease[:len(cfg.lease):len(cfg.lease)], opts...)...)
	j.observe(ctx, lease, err)
	return lease, err
}

func (j *job) newRun(lease *redlock.Lease, what Run) *run {
	what.lease = lease
	r := &run{Run: what, job: j}
	r.announce()
	return r
}

// announce hands the run to the task that gocron is about to call.
func (r *run) announce() {
	r.job.started.add(r)
}

// drop forgets a run whose task was not called.
func (j *job) drop(r *run) { j.started.remove(r) }

// offer has gocron begin a run whose lease is held, and returns when gocron has called Lock for it,
// or an error if it has not within the try timeout. The lease is then still held.
func (j *job) offer(ctx context.Context, r *run) error {
	r.taken = make(chan struct{})
	j.s.asking.RLock() // gocron hangs if it is asked while it is stopped
	if ctx.Err() != nil {
		j.s.asking.RUnlock()
		return context.Cause(ctx)
	}
	j.ready.add(r)
	err := j.gocron.RunNow()
	j.s.asking.RUnlock()
	asked := err == nil
	if asked {
		// gocron calls Lock, unless it is busy (gocron.WithLimitConcurrentJobs) or stopping.
		late := min(r.lease.TTL(), j.s.cfg.tryTimeout)
		select {
		case <-r.taken:
		case <-r.lease.Context().Done():
			err = context.Cause(r.lease.Context())
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-time.After(late):
			err = fmt.Errorf("gocron did not begin the run within %v: it has as many as it may (gocron.WithLimitConcurrentJobs), or is being stopped: %w",
				late, gocron.ErrJobRunNowFailed)
		}
	}
	if !j.ready.remove(r) {
		return nil // Lock has it
	}
	if asked {
		j.expectStray()
	}
	return err
}
