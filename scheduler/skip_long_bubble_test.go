//go:build long

package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// Ticks that were reported as pending are reported again when they are given up.
func TestSkipMissedAndStopped(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(scheduler.WithCatchUp(15*time.Second, scheduler.CatchUpAll))
		r.add(t, tenSecondly, func() {})
		r.Start()
		until(5 * time.Second)
		c.freeze(0, 1, 2)
		until(34 * time.Second)
		require.Equal(t, 1, c.book.reasons()[scheduler.SkipMissed], "10 s, at 25 s")
		require.NoError(t, r.Shutdown())
		reasons := c.book.reasons()
		require.Equal(t, 2, reasons[scheduler.SkipStopped], "20 s and 30 s: %v", reasons)
		c.thaw(0, 1, 2)
	})
	t.Run("of a leader that is none any more", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			r := c.replica(scheduler.WithElection("jobs"), scheduler.WithCatchUp(5*time.Second, scheduler.CatchUpAll))
			r.add(t, secondly, func() {})
			r.Start()
			until(9900 * time.Millisecond)
			c.freeze(0, 1, 2)
			until(26 * time.Second)
			missed := 0
			for _, e := range c.book.skips {
				if e.Reason == scheduler.SkipMissed && e.Tick.Before(at(13)) {
					missed++
				}
			}
			require.Equal(t, 3, missed, "10, 11 and 12 s, of which it was the leader: %v", c.book.skips)
			c.thaw(0, 1, 2)
		})
	})
}
