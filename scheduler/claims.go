package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// tickTolerance is how much before a tick its timer may fire, by the clock that is asked
// afterwards.
const tickTolerance = 5 * time.Millisecond

// maxNextRuns bounds how many ticks gocron is asked for: more than a day of seconds.
const maxNextRuns = 1 << 17

// claims finds the tick that a call of Lock is for. gocron does not tell, so the times that it has
// scheduled are compared with those that were claimed before.
type claims struct {
	job *job

	mu        sync.Mutex
	last      time.Time   // guarded by mu; the last scheduled time that was claimed, or when scheduling began
	tick      time.Time   // guarded by mu; the last scheduled time that was claimed; zero since scheduling began
	unclaimed []time.Time // guarded by mu; scheduled times that have come, and whose call of Lock began an offered run
	withdrawn int         // guarded by mu; calls of Lock to come for runs whose offer was withdrawn
}

// claim is a scheduled time that Lock is called for.
type claim struct {
	scheduled time.Time
	missed    []time.Time // earlier ones that Lock was not called for
	before    time.Time   // the one before it; zero if not known
}

var errTickPassed = errors.New("the tick has passed while the run waited for others")

// next returns the latest scheduled time that has come and was not claimed before. It waits until
// NewJob has returned.
func (c *claims) next(ctx context.Context) (claim, error) {
	select {
	case <-c.job.made:
	case <-ctx.Done():
		return claim{}, ctx.Err()
	}
	now := c.job.s.cfg.clock.Now().Add(tickTolerance)
	scheduled, err := c.scheduled(now)
	if err != nil {
		return claim{}, fmt.Errorf("gocron does not tell the tick: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	due, early := c.split(scheduled, now)
	var found claim
	switch n := len(due); {
	case n > 0:
		found.scheduled, due = due[n-1], due[:n-1]
	case c.withdrawn > 0, c.job.s.limited, early.IsZero():
		// A run that gocron had queued, and whose tick is gone: gocron.WithLimitConcurrentJobs.
		c.withdrawn = max(c.withdrawn-1, 0)
		return claim{}, errTickPassed
	default:
		found.scheduled = early // the clock was set back after gocron had set its timer
	}
	found.missed = c.passedOver(found.scheduled, due)
	if found.before = c.tick; len(found.missed) > 0 {
		found.before = found.missed[len(found.missed)-1]
	}
	c.last, c.tick = found.scheduled, found.scheduled
	return found, nil
}

// isLast reports whether a tick has come, and was not claimed, behind which gocron has scheduled no
// other.
func (c *claims) isLast() bool {
	select {
	case <-c.job.made:
	default:
		return false
	}
	now := c.job.s.cfg.clock.Now().Add(tickTolerance)
	scheduled, err := c.scheduled(now)
	if err != nil || len(scheduled) == 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := scheduled[len(scheduled)-1]
	return at.After(c.last) && !at.After(now)
}

// split returns which of the scheduled times, and of those unclaimed, have come and were not
// claimed, and the first that is still to come. Called with mu held.
func (c *claims) split(scheduled []time.Time, now time.Time) (due []time.Time, early time.Time) {
	all := append(c.unclaimed, scheduled...)
	c.unclaimed = nil
	slices.SortFunc(all, time.Time.Compare)
	all = slices.CompactFunc(all, time.Time.Equal)
	all = slices.DeleteFunc(all, func(at time.Time) bool { return !at.After(c.last) })
	i := slices.IndexFunc(all, func(at time.Time) bool { return at.After(now) })
	if i < 0 {
		return all, time.Time{}
	}
	return all[:i], all[i]
}

// passedOver returns the ticks between the last one that was claimed and this one: those that
// gocron kept in its list, and those that it left out, because it sets its next timer only when
// Lock has returned, and passes over what came meanwhile. Called with mu held.
func (c *claims) passedOver(scheduled time.Time, listed []time.Time) []time.Time {
	if c.tick.IsZero() {
		return listed
	}
	ticks := c.job.ticks
	all := slices.Clone(listed)
	for _, at := range ticks.between(ticks.of(c.tick), ticks.of(scheduled).Add(-1)) {
		if !slices.ContainsFunc(listed, func(l time.Time) bool { return ticks.of(l).Equal(at) }) {
			all = append(all, at)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// keep notes the ticks that are due when Lock begins an offered run. This call of Lock, or another
// one that is to come, is for them, and gocron forgets them when the run begins.
func (c *claims) keep() {
	now := c.job.s.cfg.clock.Now().Add(tickTolerance)
	scheduled, err := c.scheduled(now)
	if err != nil {
		return // gocron is busy, or the job is gone
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range scheduled {
		if at.After(c.last) && !at.After(now) {
			c.unclaimed = append(c.unclaimed, at)
		}
	}
}

// scheduled returns what gocron has scheduled, ascending, at least to the first tick after now if
// there is one. gocron keeps ticks of the past that it did not run.
func (c *claims) scheduled(now time.Time) ([]time.Time, error) {
	for n := 8; ; n *= 2 {
		times, err := c.job.gocron.NextRuns(n)
		if err != nil {
			return nil, err
		}
		if times = until(never, times); len(times) < n || times[n-1].After(now) || n >= maxNextRuns {
			return c.job.local(times), nil
		}
	}
}

// withdraw notes that gocron may still call Lock for a run whose offer was withdrawn.
func (c *claims) withdraw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.withdrawn++
}

// restart is called before gocron begins, or begins again, to schedule: what it had scheduled
// before then is not due any more.
func (c *claims) restart(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.After(c.last) {
		c.last = now
	}
	c.tick, c.unclaimed, c.withdrawn = time.Time{}, nil, 0
}
