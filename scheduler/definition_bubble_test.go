package scheduler_test

import (
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
