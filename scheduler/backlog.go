package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/redlock"
)

// errSuperseded is why the wait for a late tick is broken off for a later one.
var errSuperseded = errors.New("scheduler: a later tick took its place")

// errNotElected is why a tick that this replica was no leader for is not run by it.
var errNotElected = errors.New("scheduler: not elected in time")

// backlog is the late ticks of a job. It runs them one at a time: it waits for the lease of the
// earliest, which is granted unless a replica has run the tick, and then has gocron run the job.
// Its goroutine lives as long as there are ticks.
type backlog struct {
	job *job

	mu      sync.Mutex
	pending []lateTick              // guarded by mu; ascending
	current lateTick                // guarded by mu; the one whose lease is waited for; zero if none
	stopTry context.CancelCauseFunc // guarded by mu; breaks that off
	active  bool                    // guarded by mu; the goroutine runs
	cancel  context.CancelFunc      // guarded by mu; ends it; nil while the Scheduler is stopped
	forget  func()                  // guarded by mu; ends that nodes are kept from forgetting the job's last tick
	ctx     context.Context         // guarded by mu
	counted int                     // guarded by mu; the number of ticks, as the tracer was told
	behind  bool                    // guarded by mu; half of the window had passed since the oldest of them
	done    sync.WaitGroup

	refusals atomic.Int32 // by a listener, since a task was called
}

// start lets late ticks be run until ctx ends or stop is called.
func (b *backlog) start(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cancel == nil {
		b.ctx, b.cancel = context.WithCancel(ctx)
		if !b.job.unlocked {
			b.forget = b.job.s.q.KeepSequence(b.job.key)
		}
	}
}

// stop gives up all ticks and waits for the goroutine.
func (b *backlog) stop() {
	b.mu.Lock()
	if b.cancel != nil {
		b.cancel()
		b.cancel = nil
		if b.forget != nil {
			b.forget()
		}
	}
	pending := b.pending
	b.pending = nil
	b.count()
	b.mu.Unlock()
	b.done.Wait()
	b.giveUpAll(pending, SkipStopped)
}

// addSkipped adds a tick that was skipped, if the job's policies say so, and reports that.
func (b *backlog) addSkipped(scheduled time.Time, reason Reason) bool {
	return b.job.runsLate(reason) && b.add(newLateTick(b.job, scheduled, reason))
}

// addPassedOver adds ticks that gocron has passed over, because the process stood still or too many
// jobs were running. Unless all are wanted, the tick that is due takes their place, and they are
// reported. unfit is why this replica runs no ticks; nil if it does.
func (b *backlog) addPassedOver(ctx context.Context, scheduled []time.Time, unfit error) {
	all := b.job.cfg.catchUp == CatchUpAll && !b.job.ticks.random
	reason := SkipSuperseded
	switch {
	case unfit != nil:
		reason = newSkipError(b.job.name, time.Time{}, unfit).Reason
	case all:
		reason = SkipMissed
	}
	if all {
		b.add(newLateTicks(b.job, scheduled, reason)...)
		return
	}
	for _, at := range scheduled[max(0, len(scheduled)-MaxCatchUp):] {
		b.job.s.skip(ctx, &SkipError{Job: b.job.name, Tick: b.job.ticks.of(at), Reason: reason})
	}
}

// A search for missed ticks that found no quorum is repeated after pauses that double between
// these.
const (
	minSearchPause = 50 * time.Millisecond
	maxSearchPause = time.Second
)

// addMissed asks the nodes which ticks were missed, and adds them. It returns when that is done, or
// ctx has ended.
func (b *backlog) addMissed(ctx context.Context) {
	missed, err := b.job.history.missed(ctx)
	for pause := minSearchPause; errors.Is(err, redlock.ErrNoQuorum); pause = min(2*pause, maxSearchPause) {
		if sleep(ctx, pause) != nil {
			return
		}
		missed, err = b.job.history.missed(ctx)
	}
	switch {
	case err == nil && b.job.s.clock.ahead(ctx) != nil: // it is looked for them again later
	case err == nil:
		b.add(newMissedTicks(b.job, missed)...)
	case ctx.Err() == nil:
		b.job.s.cfg.logger.WarnContext(ctx, "scheduler: cannot tell which ticks were missed: none is caught up", "job", b.job.name, "error", err)
	}
}

// queueBehind adds a tick that has to wait behind earlier ones, and reports whether it has.
func (b *backlog) queueBehind(scheduled time.Time) bool {
	if b.job.cfg.catchUp != CatchUpAll {
		return false
	}
	b.mu.Lock()
	busy, reason, current := b.active, SkipMissed, b.current
	if current.elsewhere() {
		reason = SkipOverlap
	}
	b.mu.Unlock()
	if reason == SkipOverlap && b.job.history.isBeside(current.tick) {
		b.job.history.cameBeside(b.job.ticks.of(scheduled)) // that run goes on
	}
	return busy && b.add(newLateTick(b.job, scheduled, reason))
}

// overtakes reports whether missed ticks are to be run before one that was granted. Then it adds
// them all, and gives the lease back.
func (b *backlog) overtakes(ctx context.Context, lease *redlock.Lease, granted lateTick, before time.Time) bool {
	missed := b.job.history.missedBefore(lease, granted.tick, before)
	if len(missed) == 0 || !b.add(append(newMissedTicks(b.job, missed), granted)...) {
		return false
	}
	_ = lease.Abandon(ctx)
	return true
}

// add adds ticks, in the place of earlier ones unless all are wanted. It reports whether the
// backlog is started, and so takes any.
func (b *backlog) add(late ...lateTick) bool {
	b.mu.Lock()
	if b.cancel == nil {
		b.mu.Unlock()
		return false
	}
	b.merge(late)
	superseded := b.trim()
	if !b.active && len(b.pending) > 0 {
		b.active = true
		b.done.Add(1)
		go b.run(b.ctx)
	}
	b.count()
	b.mu.Unlock()
	b.giveUpAll(superseded, SkipSuperseded)
	return true
}

// merge adds the ticks that are not there, or are wanted for longer now. Called with mu held.
func (b *backlog) merge(late []lateTick) {
	for _, l := range late {
		if b.current.covers(l) || slices.ContainsFunc(b.pending, func(p lateTick) bool { return p.covers(l) }) {
			continue
		}
		b.pending = slices.DeleteFunc(b.pending, func(p lateTick) bool { return p.tick.Equal(l.tick) })
		b.pending = append(b.pending, l)
	}
	slices.SortFunc(b.pending, func(a, b lateTick) int { return a.tick.Compare(b.tick) })
}

// trim removes and returns what a later tick supersedes: all but the last unless all are wanted,
// and all but the last MaxCatchUp in any case. If all are wanted, it is noted that these are not:
// they would be found missing before each tick that is granted. Called with mu held.
func (b *backlog) trim() (superseded []lateTick) {
	most := MaxCatchUp
	if b.job.cfg.catchUp != CatchUpAll {
		most = 1
		if len(b.pending) > 0 && !b.current.zero() && b.current.tick.Before(b.pending[len(b.pending)-1].tick) {
			b.stopTry(errSuperseded)
		}
	}
	if excess := len(b.pending) - most; excess > 0 {
		superseded = b.pending[:excess]
		b.pending = slices.Clone(b.pending[excess:])
		if b.job.cfg.catchUp == CatchUpAll {
			b.job.history.closeUpTo(superseded[excess-1].tick)
		}
	}
	return superseded
}

// run runs one tick after the other until there are none.
func (b *backlog) run(ctx context.Context) {
	defer b.done.Done()
	for {
		try, late := b.next(ctx)
		if late.zero() {
			return
		}
		lease, err := b.acquire(try, late)
		b.endTry()
		switch {
		case err != nil:
			b.failed(ctx, context.Cause(try), late, err)
		case b.job.history.overlapped(lease.Previous(), late.tick):
			_ = lease.Abandon(ctx)
			b.giveUp(late, SkipOverlap, nil)
		case b.overtakes(ctx, lease, late, time.Time{}):
		default:
			b.runLate(ctx, lease, late)
		}
	}
}

// next takes the earliest tick, and makes the context in which its lease is waited for.
func (b *backlog) next(ctx context.Context) (context.Context, lateTick) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil || len(b.pending) == 0 {
		b.active = false
		return nil, lateTick{}
	}
	b.current = b.pending[0]
	b.pending = b.pending[1:]
	var try context.Context
	try, b.stopTry = context.WithCancelCause(ctx)
	return try, b.current
}

// endTry notes that no lease is waited for.
func (b *backlog) endTry() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current = lateTick{}
	b.stopTry(context.Canceled)
	b.count()
}

// acquire waits for the lease of a tick.
func (b *backlog) acquire(ctx context.Context, late lateTick) (*redlock.Lease, error) {
	if !late.expires.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(0, late.expires.Sub(b.job.s.cfg.clock.Now())))
		defer cancel()
	}
	if err := sleep(ctx, late.pause); err != nil {
		return nil, err
	}
	for {
		b.mu.Lock()
		b.count() // the backlog of a leader passes to its successor
		b.mu.Unlock()
		if err := b.job.s.leader.wait(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotElected, err)
		}
		if err := b.job.s.clock.ahead(ctx); err != nil {
			return nil, err
		}
		lease, err := b.job.s.q.Acquire(b.job.traced(ctx, late.tick, true), b.job.key, b.job.leaseOptions(append(b.job.tickOptions(late.tick), redlock.WithDue(late.due))...)...)
		b.job.labels.observe(ctx, lease, err)
		if err != nil || b.job.s.leader.check(ctx) == nil {
			return lease, err
		}
		_ = lease.Abandon(ctx) // the leadership was lost meanwhile
	}
}

// failed reports a tick whose lease was not granted, or tries again. ended is why the wait for it
// was broken off, if it was.
func (b *backlog) failed(ctx context.Context, ended error, late lateTick, err error) {
	switch skip := b.job.history.explain(late.tick, err, late.retries < maxRetries); {
	case errors.Is(ended, errSuperseded):
		b.giveUp(late, SkipSuperseded, nil)
	case errors.Is(err, errNotElected) && late.follower():
	case ctx.Err() != nil:
		b.giveUp(late, SkipStopped, err)
	case errors.Is(err, context.DeadlineExceeded):
		b.giveUp(late, late.atExpiry(b.job.cfg.catchUp), err)
	case skip.Reason == SkipTimeout, skip.Reason == SkipHeld:
		late.pause = retryPause(late.retries)
		late.retries++
		b.add(late)
	default:
		b.job.s.skip(ctx, skip)
	}
}

// runLate has gocron run the job for a tick, and waits until the run is over. If gocron is too
// busy, the tick is added again.
func (b *backlog) runLate(ctx context.Context, lease *redlock.Lease, late lateTick) {
	err := b.job.offer(ctx, newRunLock(b.job, lease, late, Run{Attempt: lease.Attempt(), CatchUp: true}))
	if err == nil {
		b.job.history.began(late.tick)
		select {
		case <-lease.Context().Done():
		case <-ctx.Done():
		}
		return
	}
	_ = lease.Abandon(ctx)
	if ctx.Err() != nil || errors.Is(err, gocron.ErrJobNotFound) {
		b.giveUp(late, SkipStopped, err)
		return
	}
	late.pause = restFor(1)
	b.add(late)
}

// giveUp reports a tick that this replica does not run any more. If the nodes failed at its time,
// people are told of that: by itself it is no news that a later tick took its place.
func (b *backlog) giveUp(late lateTick, reason Reason, err error) {
	if late.follower() && reason != SkipMissed {
		return
	}
	e := &SkipError{Job: b.job.name, Tick: late.tick, Reason: reason, Err: err}
	b.job.s.skip(context.Background(), e)
	if first := (&SkipError{Job: e.Job, Tick: e.Tick, Reason: late.reason}); reason == SkipSuperseded && !first.Expected() {
		b.job.s.teller.skip(first)
	}
}

func (b *backlog) giveUpAll(late []lateTick, reason Reason) {
	for _, l := range late {
		b.giveUp(l, reason, nil)
	}
}

// size returns how many ticks are still to be run, and the oldest of them. Called with mu held.
func (b *backlog) size() (n int, oldest lateTick) {
	if b.job.s.leader.check(b.job.s.cfg.context) != nil {
		return 0, lateTick{}
	}
	for _, late := range append([]lateTick{b.current}, b.pending...) {
		if !late.wanted() {
			continue
		}
		if n++; n == 1 {
			oldest = late
		}
	}
	return n, oldest
}

// count tells the tracer how many ticks are still to be run, if that has changed, and warns of a
// job that falls behind. Called with mu held.
func (b *backlog) count() {
	s, cfg := b.job.s, &b.job.cfg
	n, oldest := b.size()
	if t := s.cfg.tracer.backlog; t != nil && n != b.counted {
		t.TraceBacklog(s.cfg.context, TraceBacklogData{Job: b.job.name, Ticks: n, Oldest: oldest.tick})
	}
	b.counted = n
	age := s.cfg.clock.Since(oldest.tick)
	switch {
	case n == 0 || oldest.expires.IsZero() || cfg.catchUp == CatchUpNone || age < cfg.window/4:
		b.behind = false
	case age > cfg.window/2 && !b.behind:
		b.behind = true
		s.cfg.logger.WarnContext(s.cfg.context, "scheduler: a job falls behind its schedule: ticks older than the catch-up window will not be run",
			"job", b.job.name, "backlog", n, "oldest", oldest.tick, "window", cfg.window)
	}
}

// sleep waits for d, or returns the cause of ctx's end.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
