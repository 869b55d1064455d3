package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// requireOnceAMinute waits until all have settled, and wants ten runs in ten minutes.
func (c *cluster) requireOnceAMinute(t *testing.T) {
	t.Helper()
	until(day(1, 0, 5, 10))
	n := len(c.book.ticks())
	until(day(1, 0, 15, 10))
	require.Len(t, c.book.ticks()[n:], 10, "%v", c.book.texts("04:05.000"))
}

// A rollout that was begun and taken back leaves replicas that have kept the old version beside
// those that got it again: all of them have the same ticks.
func TestIntervalAfterARolloutThatWasTakenBack(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		start := func(every time.Duration) *replica {
			r := c.replica(quiet)
			r.add(t, gocron.DurationJob(every), func() {})
			r.Start()
			return r
		}
		start(time.Minute)
		second := start(time.Minute)
		until(day(1, 0, 1, 10))
		c.stop(second)
		version2 := start(2 * time.Minute)
		until(day(1, 0, 1, 50))
		c.stop(version2)
		start(time.Minute)
		c.requireOnceAMinute(t)
	})
}

// A replica of another version that came and went ends no job of those that stay.
func TestRandomJobDuringARollout(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet)
		r.add(t, gocron.DurationRandomJob(time.Minute, time.Minute+time.Second), func() {})
		r.Start()
		until(day(1, 0, 1, 30))
		canary := c.replica(quiet)
		canary.add(t, gocron.CronJob("30 * * * *", false), func() {})
		canary.Start()
		until(day(1, 0, 2, 30))
		c.stop(canary)
		until(day(1, 0, 20, 0))
		require.Len(t, r.Jobs(), 1)
		require.GreaterOrEqual(t, len(c.book.ticks()), 10)
	})
}

// Nodes that were all emptied take no job away.
func TestRandomJobOnNodesThatWereEmptied(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet)
		r.add(t, gocron.DurationRandomJob(10*time.Second, 11*time.Second), func() {})
		r.Start()
		until(day(1, 0, 1, 30))
		for _, n := range c.fleet.Nodes() {
			n.FlushAll()
		}
		n := len(c.book.ticks())
		until(day(1, 0, 5, 0))
		require.Len(t, r.Jobs(), 1)
		require.GreaterOrEqual(t, len(c.book.ticks()), n+15)
	})
}

// Nor do they have replicas that go on and those that begin part.
func TestIntervalOnNodesThatWereEmptied(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		start := func() {
			r := c.replica(quiet)
			r.add(t, gocron.DurationJob(time.Minute), func() {})
			r.Start()
		}
		start()
		until(day(1, 0, 1, 10))
		for _, n := range c.fleet.Nodes() {
			n.FlushAll()
		}
		until(day(1, 0, 1, 20))
		start()
		c.requireOnceAMinute(t)
	})
}

// A run of the old version that ends after the first tick of the new one takes no job away.
func TestRandomJobAfterALongRunOfTheOldVersion(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		old := c.replica(quiet)
		old.add(t, tenSecondly, func(ctx context.Context) { nap(ctx, 35*time.Second) })
		old.Start()
		until(at(11))
		r := c.replica(quiet)
		r.add(t, gocron.DurationRandomJob(10*time.Second, 11*time.Second), func() {})
		r.Start()
		until(at(88)) // the second run of the old version was 50 to 85
		c.stop(old)
		n := len(c.book.ticks())
		until(at(240))
		require.Len(t, r.Jobs(), 1)
		require.GreaterOrEqual(t, len(c.book.ticks()), n+10)
	})
}

// A clock that is set right during a rollout does not make it a conflict.
func TestClockThatIsSetRightDuringARollout(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		clock := &settable{}
		clock.set(-10 * time.Minute)
		old := c.replica(quiet, scheduler.WithWall(clock.now))
		old.add(t, minutely, func() {})
		old.Start()
		until(day(1, 0, 1, 30))
		r := c.replica(quiet)
		r.add(t, gocron.CronJob("*/2 * * * *", false), func() {})
		r.Start()
		until(day(1, 0, 3, 10))
		clock.set(0)
		until(day(1, 0, 4, 10))
		require.Empty(t, old.Conflicts())
		c.stop(old)
		until(day(1, 0, 12, 10))
		require.Empty(t, r.Conflicts())
	})
}
