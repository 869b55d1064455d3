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

// errSuperseded is why a chase is broken off for a later tick.
var errSuperseded = errors.New("scheduler: a later tick took its place")

// chase goes after the ticks of a job that were not run at their time, one at a time: it waits for
// their lease, which whoever asks gets unless somebody has run the tick, and then has gocron run
// the job. Its goroutine lives as long as there are ticks.
type chase struct {
	job *job

	mu      sync.Mutex
	pending []quarry                // guarded by mu; ascending
	current quarry                  // guarded by mu; the one that is waited for; zero if none
	stopTry context.CancelCauseFunc // guarded by mu; breaks that off
	active  bool                    // guarded by mu; the goroutine runs
	stop    context.CancelFunc      // guarded by mu; ends it; nil while the Scheduler is stopped
	forget  func()                  // guarded by mu; ends that nodes are kept from forgetting the job's last tick
	ctx     context.Context         // guarded by mu
	counted int                     // guarded by mu; ticks owed, as the tracer was told
	behind  bool                    // guarded by mu; half of the window had passed since the oldest of them
	done    sync.WaitGroup
}

// errNotElected is why a tick that this replica was no leader for is not run by it.
var errNotElected = errors.New("scheduler: not elected in time")

// quarry is a tick that was not run at its time.
type quarry struct {
	tick  time.Time
	why   Reason        // it was not run at its time
	until time.Time     // it is not run after this; zero means no limit
	rest  time.Duration // to be waited first

	failed int // how often an attempt that failed seemed to be in the way
}

// maxFailed is how often a tick is asked for again because an attempt that failed seems to be in
// the way: it is taken back within moments, or when a connection has been made again. Else, after
// some two seconds, it was no attempt but a run that was cut short.
const maxFailed = 3

// takenBackIn is the pause before that: 100 ms, and then four times as long each time.
func takenBackIn(failed int) time.Duration { return 100 * time.Millisecond << (2 * failed) }

func (q quarry) zero() bool { return q.tick.IsZero() }

// follower reports whether the tick is run only if this replica is elected in time: most of the
// time the leader runs it.
func (q quarry) follower() bool { return q.why == SkipNotLeader }

// elsewhere reports whether the tick is run, or overlapped, by a run that goes on.
func (q quarry) elsewhere() bool { return q.why == SkipHeld || q.why == SkipOverlap }

// covers reports whether q is the same tick, and not wanted for longer.
func (p quarry) covers(q quarry) bool {
	return p.tick.Equal(q.tick) && (p.until.IsZero() || !q.until.IsZero() && !q.until.After(p.until))
}

// owed reports whether the tick is still to be run, as far as this replica knows.
func (q quarry) owed() bool {
	return !q.zero() && !q.follower() && q.why != SkipHeld && (q.why != SkipOverlap || q.until.IsZero())
}

// wanted describes a tick, scheduled for a time, that was not run then.
func (j *job) wanted(scheduled time.Time, why Reason) quarry {
	q := quarry{tick: j.ticks.of(scheduled), why: why}
	switch {
	case why == SkipOverlap && j.cfg.overlap == OverlapQueue:
	case why == SkipNotLeader, j.cfg.catchUp == CatchUpNone: //mutant:follower-keeps-ticks
		// A replica that is elected later asks the nodes what was missed.
		q.until = scheduled.Add(Grace) //mutant:tick-of-a-hand-over-lost,tick-of-a-stall-lost
	default:
		q.until = j.expiry(q.tick)
	}
	return q
}

// expiry is when a tick is too old to be caught up. That of a duration job may be run at any time
// of its interval, so its age counts from the end.
func (j *job) expiry(tick time.Time) time.Time { return tick.Add(j.ticks.every + j.cfg.window) } //mutant:old-tick-run

// start lets ticks be chased until ctx ends or halt is called.
func (c *chase) start(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop == nil {
		c.ctx, c.stop = context.WithCancel(ctx)
		if !c.job.open {
			c.forget = c.job.s.q.KeepSequence(c.job.key) //mutant:idle-record-not-kept
		}
	}
}

// halt gives up all ticks and waits for the goroutine.
func (c *chase) halt() {
	c.mu.Lock()
	if c.stop != nil {
		c.stop()
		c.stop = nil
		if c.forget != nil {
			c.forget()
		}
	}
	pending := c.pending
	c.pending = nil
	c.count()
	c.mu.Unlock()
	c.done.Wait()
	for _, q := range pending {
		c.giveUp(q, SkipStopped, nil)
	}
}

// after goes after a tick that was skipped, if the job's policies say so, and reports that.
func (c *chase) after(scheduled time.Time, why Reason) bool {
	cfg := &c.job.cfg
	switch why {
	case SkipOverlap:
		// That run may be of a replica that has died, or be late itself. If it has really taken the
		// tick's time, the tick is skipped after all: see overlapped.
		if cfg.overlap == OverlapSkip && cfg.catchUp == CatchUpNone { //mutant:tick-behind-a-dead-run-lost
			return false
		}
	case SkipHeld:
		// Its holder may die, or give the tick back because it is shut down.
		if cfg.catchUp == CatchUpNone { //mutant:held-tick-dropped
			return false
		}
	case SkipNotLeader:
		if c.job.ticks.random {
			return false // the leader's are others
		}
	case SkipSplit, SkipNoQuorum, SkipTimeout, SkipQuarantined: //mutant:failed-tick-not-chased
	default:
		return false
	}
	return c.add(c.job.wanted(scheduled, why))
}

// afterCut goes after the tick of a run that was cut short, if it is to be run at least once: more
// slowly each time.
func (c *chase) afterCut(r *run) {
	if r.Tick.IsZero() || c.job.cfg.delivery != redlock.AtLeastOnce {
		return
	}
	q := c.job.wanted(r.Tick, SkipMissed)
	q.rest = restFor(r.Attempt)
	c.add(q)
}

// restFor is the pause after a number of attempts: a second, doubled up to a minute.
func restFor(attempts int) time.Duration { return min(time.Second<<min(attempts-1, 6), time.Minute) }

// missed goes after ticks that gocron has passed over, because the process stood still or too many
// jobs were running. Unless all are wanted, the tick that is due takes their place, and they are
// reported.
func (c *chase) missed(ctx context.Context, ticks []time.Time, follower bool) {
	all := c.job.cfg.catchUp == CatchUpAll && !c.job.ticks.random
	why := SkipSuperseded
	switch {
	case follower:
		why = SkipNotLeader
	case all:
		why = SkipMissed
	}
	if all {
		c.add(c.job.quarries(why, ticks...)...)
		return
	}
	for _, tick := range ticks[max(0, len(ticks)-MaxCatchUp):] {
		c.job.s.skip(ctx, &SkipError{Job: c.job.name, Tick: c.job.ticks.of(tick), Reason: why}) //mutant:passed-over-tick-dropped-silently
	}
}

// waitsFor reports whether a tick has to wait its turn behind earlier ones, and puts it there if
// so.
func (c *chase) waitsFor(scheduled time.Time) bool {
	if c.job.cfg.catchUp != CatchUpAll {
		return false
	}
	c.mu.Lock()
	busy, why := c.active, SkipMissed
	if c.current.elsewhere() {
		why = SkipOverlap
	}
	c.mu.Unlock()
	return busy && c.add(c.job.wanted(scheduled, why))
}

// add adds a tick, in the place of earlier ones unless all are wanted.
func (c *chase) add(quarries ...quarry) bool {
	c.mu.Lock()
	if c.stop == nil {
		c.mu.Unlock()
		return false
	}
	var superseded []quarry
	for _, q := range quarries {
		if c.current.covers(q) || slices.ContainsFunc(c.pending, func(p quarry) bool { return p.covers(q) }) {
			continue
		}
		c.pending = slices.DeleteFunc(c.pending, func(p quarry) bool { return p.tick.Equal(q.tick) })
		c.pending = append(c.pending, q)
	}
	slices.SortFunc(c.pending, func(a, b quarry) int { return a.tick.Compare(b.tick) })
	if c.job.cfg.catchUp != CatchUpAll && len(c.pending) > 0 {
		superseded = append(superseded, c.pending[:len(c.pending)-1]...)
		c.pending = slices.Clone(c.pending[len(c.pending)-1:])
		if !c.current.zero() && c.current.tick.Before(c.pending[0].tick) {
			c.stopTry(errSuperseded)
		}
	}
	if excess := len(c.pending) - MaxCatchUp; excess > 0 {
		superseded = append(superseded, c.pending[:excess]...)
		c.pending = slices.Clone(c.pending[excess:])
	}
	if !c.active && len(c.pending) > 0 {
		c.active = true
		c.done.Add(1)
		go c.run(c.ctx)
	}
	c.count()
	c.mu.Unlock()
	for _, q := range superseded {
		c.giveUp(q, SkipSuperseded, nil)
	}
	return true
}

// run goes after one tick after the other until there are none.
func (c *chase) run(ctx context.Context) {
	defer c.done.Done()
	for {
		try, q := c.next(ctx)
		if q.zero() {
			return
		}
		lease, err := c.acquire(try, q)
		c.mu.Lock()
		c.current = quarry{}
		c.stopTry(context.Canceled)
		c.count()
		c.mu.Unlock()
		if err == nil {
			switch {
			case c.job.overlapped(lease.Previous(), q.tick): //mutant:overlapped-tick-run-later
				_ = lease.Forgo(ctx)
				c.giveUp(q, SkipOverlap, nil)
			case c.job.defers(ctx, lease, q, time.Time{}):
			default:
				c.hand(ctx, lease, q)
			}
			continue
		}
		switch skip := c.job.why(q.tick, err, q.failed < maxFailed); {
		case errors.Is(context.Cause(try), errSuperseded):
			c.giveUp(q, SkipSuperseded, nil)
		case errors.Is(err, errNotElected) && q.follower():
		case ctx.Err() != nil:
			c.giveUp(q, SkipStopped, err)
		case errors.Is(err, context.DeadlineExceeded) && (q.elsewhere() || c.job.cfg.catchUp == CatchUpNone && !q.follower()):
			c.giveUp(q, q.why, err)
		case errors.Is(err, context.DeadlineExceeded):
			c.giveUp(q, SkipMissed, err)
		case skip.Reason == SkipTimeout, skip.Reason == SkipHeld:
			q.rest = takenBackIn(q.failed) //mutant:failed-attempt-outlasts-the-tick
			q.failed++
			c.add(q)
		default:
			c.job.s.skip(ctx, skip)
		}
	}
}

// count tells how many ticks are owed, if that is news. Called with mu held.
func (c *chase) count() {
	s := c.job.s
	n, oldest := 0, quarry{}
	if s.leader.check(s.cfg.context) == nil {
		for _, q := range append([]quarry{c.current}, c.pending...) {
			if q.owed() {
				if n++; n == 1 {
					oldest = q
				}
			}
		}
	}
	if t := s.cfg.tracer.backlog; t != nil && n != c.counted {
		t.TraceBacklog(s.cfg.context, TraceBacklogData{Job: c.job.name, Ticks: n, Oldest: oldest.tick})
	}
	c.counted = n
	age := s.cfg.clock.Since(oldest.tick)
	switch {
	case n == 0 || oldest.until.IsZero() || c.job.cfg.catchUp == CatchUpNone || age < c.job.cfg.window/4:
		c.behind = false
	case age > c.job.cfg.window/2 && !c.behind:
		c.behind = true
		s.cfg.logger.WarnContext(s.cfg.context, "scheduler: a job falls behind its schedule: ticks older than the catch-up window will not be run",
			"job", c.job.name, "owed", n, "oldest", oldest.tick, "window", c.job.cfg.window)
	}
}

// next takes the earliest tick, and makes the context for going after it.
func (c *chase) next(ctx context.Context) (context.Context, quarry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil || len(c.pending) == 0 {
		c.active = false
		return nil, quarry{}
	}
	c.current = c.pending[0]
	c.pending = c.pending[1:]
	var try context.Context
	try, c.stopTry = context.WithCancelCause(ctx)
	return try, c.current
}

// acquire waits for the lease of a tick.
func (c *chase) acquire(ctx context.Context, q quarry) (*redlock.Lease, error) {
	if !q.until.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, max(0, q.until.Sub(c.job.s.cfg.clock.Now())))
		defer cancel()
	}
	if err := sleep(ctx, q.rest); err != nil {
		return nil, err
	}
	cfg := &c.job.s.cfg.commonConfig
	for {
		c.mu.Lock()
		c.count() // what a leader owes is its successor's
		c.mu.Unlock()
		if err := c.job.s.leader.wait(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotElected, err)
		}
		lease, err := c.job.s.q.Acquire(ctx, c.job.key, append(cfg.lease[:len(cfg.lease):len(cfg.lease)], c.job.once(q.tick)...)...)
		c.job.observe(ctx, lease, err)
		if err != nil || c.job.s.leader.check(ctx) == nil {
			return lease, err
		}
		_ = lease.Forgo(ctx) // the leadership was lost meanwhile
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

// hand has gocron run the job for a tick, and waits until the run is over. If gocron is too busy,
// the tick is gone after again.
func (c *chase) hand(ctx context.Context, lease *redlock.Lease, q quarry) {
	r := &run{job: c.job, Run: Run{Job: c.job.name, Tick: q.tick, Attempt: lease.Attempt(), CatchUp: true, lease: lease}}
	err := c.job.offer(ctx, r)
	if err == nil {
		c.job.began(q.tick)
		select {
		case <-lease.Context().Done():
		case <-ctx.Done():
		}
		return
	}
	_ = lease.Forgo(ctx)
	if ctx.Err() != nil || errors.Is(err, gocron.ErrJobNotFound) {
		c.giveUp(q, SkipStopped, err)
		return
	}
	q.rest = restFor(1)
	c.add(q)
}

// giveUp reports a tick that this replica does not go after any more.
func (c *chase) giveUp(q quarry, why Reason, err error) {
	if q.follower() && why != SkipMissed {
		return
	}
	c.job.s.skip(context.Background(), &SkipError{Job: c.job.name, Tick: q.tick, Reason: why, Err: err})
}
