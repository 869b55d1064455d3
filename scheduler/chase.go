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

// chase goes after the ticks of a job that were not run at their time, one at a time: it waits for their lease, which whoever asks gets
// unless somebody has run the tick, and then has gocron run the job. Its goroutine lives as long as there are ticks.
type chase struct {
	job *job

	mu      sync.Mutex
	pending []quarry                // guarded by mu; ascending
	current quarry                  // guarded by mu; the one that is waited for; zero if none
	stopTry context.CancelCauseFunc // guarded by mu; breaks that off
	active  bool                    // guarded by mu; the goroutine runs
	stop    context.CancelFunc      // guarded by mu; ends it; nil while the Scheduler is stopped
	ctx     context.Context         // guarded by mu
	done    sync.WaitGroup
}

// errNotElected is why a tick that this replica was no leader for is not run by it.
var errNotElected = errors.New("scheduler: not elected in time")

// quarry is a tick that is wanted.
type quarry struct {
	tick     time.Time
	until    time.Time     // not run after this; zero for ever
	follower bool          // wanted only if this replica is elected in time; most of the time another one runs it
	behind   bool          // it came while an earlier run went on, as it seemed, and is skipped if that run is completed
	rest     time.Duration // to be waited first
}

func (q quarry) zero() bool { return q.tick.IsZero() }

// start lets ticks be chased until ctx ends or halt is called.
func (c *chase) start(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop == nil {
		c.ctx, c.stop = context.WithCancel(ctx)
	}
}

// halt gives up all ticks and waits for the goroutine.
func (c *chase) halt() {
	c.mu.Lock()
	if c.stop != nil {
		c.stop()
		c.stop = nil
	}
	pending := c.pending
	c.pending = nil
	c.mu.Unlock()
	c.done.Wait()
	for _, q := range pending {
		c.giveUp(q, SkipStopped, nil)
	}
}

// after goes after a tick that was skipped, if the job's policies say so, and reports that.
func (c *chase) after(tick time.Time, why Reason) bool {
	cfg := &c.job.cfg
	q := quarry{tick: tick}
	switch why {
	case SkipOverlap:
		// That run may be of a replica that has died. If it is completed, the tick is skipped after all.
		switch {
		case cfg.overlap == OverlapQueue:
		case cfg.catchUp != CatchUpNone:
			q.until, q.behind = tick.Add(cfg.window), true
		default:
			return false
		}
	case SkipHeld:
		// Its holder may die.
		if cfg.delivery != redlock.AtLeastOnce || cfg.catchUp == CatchUpNone {
			return false
		}
		q.until = tick.Add(cfg.window)
	case SkipNotLeader:
		if c.job.ticks.random {
			return false // the leader's are others
		}
		q.until, q.follower = tick.Add(max(cfg.window, HandoverGrace)), true
	case SkipNoQuorum, SkipTimeout, SkipQuarantined:
		if cfg.catchUp == CatchUpNone {
			return false
		}
		q.until = tick.Add(cfg.window)
	default:
		return false
	}
	return c.add(q)
}

// afterCut goes after the tick of a run that was cut short, if it is to be run at least once: more slowly each time.
func (c *chase) afterCut(r *run) {
	if r.Tick.IsZero() || c.job.cfg.delivery != redlock.AtLeastOnce {
		return
	}
	tick := c.job.ticks.of(r.Tick)
	c.add(quarry{tick: tick, until: tick.Add(c.job.cfg.window), rest: restFor(r.Attempt)})
}

// restFor is the pause after a number of attempts: a second, doubled up to a minute.
func restFor(attempts int) time.Duration { return min(time.Second<<min(attempts-1, 6), time.Minute) }

// missed goes after ticks that gocron has passed over, because the process stood still or too many jobs were running.
func (c *chase) missed(ticks []time.Time, follower bool) {
	if c.job.cfg.catchUp != CatchUpAll || c.job.ticks.random {
		return
	}
	quarries := c.job.quarries(ticks...)
	for i := range quarries {
		quarries[i].follower = follower
	}
	c.add(quarries...)
}

// waitsFor reports whether a tick has to wait its turn behind earlier ones, and puts it there if so.
func (c *chase) waitsFor(tick time.Time) bool {
	if c.job.cfg.catchUp != CatchUpAll {
		return false
	}
	c.mu.Lock()
	busy, behind := c.active, c.current.behind
	c.mu.Unlock()
	return busy && c.add(quarry{tick: tick, until: tick.Add(c.job.cfg.window), behind: behind})
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
		if q.tick.Equal(c.current.tick) || slices.ContainsFunc(c.pending, func(p quarry) bool { return p.tick.Equal(q.tick) }) {
			continue
		}
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
		c.mu.Unlock()
		if err == nil {
			switch {
			case q.behind && c.job.overlaps(lease.Previous(), q.tick):
				_ = lease.Forgo(ctx)
				c.giveUp(q, SkipOverlap, nil)
			case c.job.defers(ctx, lease, q, time.Time{}):
			default:
				c.hand(ctx, lease, q)
			}
			continue
		}
		switch skip := skipped(c.job.name, q.tick, q.tick.UnixMilli(), err); {
		case errors.Is(context.Cause(try), errSuperseded):
			c.giveUp(q, SkipSuperseded, nil)
		case errors.Is(err, errNotElected) && q.follower:
		case ctx.Err() != nil:
			c.giveUp(q, SkipStopped, err)
		case errors.Is(err, context.DeadlineExceeded):
			c.giveUp(q, SkipMissed, err)
		default:
			c.job.s.skip(ctx, skip)
		}
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
		if err := c.job.s.leader.wait(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotElected, err)
		}
		lease, err := c.job.s.q.Acquire(ctx, c.job.key, append(cfg.lease[:len(cfg.lease):len(cfg.lease)], c.job.once(q.tick))...)
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

// hand has gocron run the job for a tick, and waits until the run is over. If gocron is too busy, the tick is gone after again.
func (c *chase) hand(ctx context.Context, lease *redlock.Lease, q quarry) {
	r := &run{job: c.job, Run: Run{Job: c.job.name, Tick: q.tick, Attempt: lease.Attempt(), CatchUp: true, lease: lease}}
	c.job.ready.add(r)
	err := c.job.gocron.RunNow()
	if err == nil {
		// gocron calls Lock, unless it is busy (gocron.WithLimitConcurrentJobs) or stopping.
		select {
		case <-lease.Context().Done(): // the run is over, or the lease is lost
		case <-ctx.Done():
		case <-time.After(min(lease.TTL(), c.job.s.cfg.tryTimeout)):
		}
	}
	if !c.job.ready.remove(r) {
		select {
		case <-lease.Context().Done():
		case <-ctx.Done():
		}
		return
	}
	if err == nil {
		c.job.expectStray()
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
	if q.follower && why != SkipMissed {
		return
	}
	c.job.s.skip(context.Background(), &SkipError{Job: c.job.name, Tick: q.tick, Reason: why, Err: err})
}
