package scheduler_test

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// Ticks that were skipped because the clock was ahead, and that nobody ran, are found missed when
// it is set right; a late tick that was waiting is given up meanwhile.
func TestClockThatIsSetRight(t *testing.T) {
	for _, mode := range []struct {
		name string
		opts []scheduler.Option
	}{{"locker", nil}, {"leader", []scheduler.Option{scheduler.WithElection("jobs")}}} {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				clock, log := &settable{Clock: clockwork.NewRealClock()}, new(journal)
				r := c.replica(append(mode.opts, scheduler.WithClock(clock), scheduler.WithLogger(log.logger()), scheduler.WithCatchUp(time.Hour, scheduler.CatchUpAll))...)
				r.add(t, tenSecondly, func() {})
				r.Start()
				until(15 * time.Second)
				require.NoError(t, r.StopJobs())
				clock.set(10 * time.Second)
				r.Start()
				until(42 * time.Second)
				require.Equal(t, []int{10}, c.book.tickSeconds())
				require.NotZero(t, c.book.reasons()[scheduler.SkipAhead])
				require.Error(t, r.Healthy())
				clock.set(0)
				until(48 * time.Second)
				require.Equal(t, []int{10, 20, 30, 40}, c.book.tickSeconds(), "not with the next tick only")
				require.NoError(t, r.Healthy())
				require.Len(t, log.lines("clock is right again"), 1)
				until(65 * time.Second)
				require.Equal(t, []int{10, 20, 30, 40, 50, 60}, c.book.tickSeconds())
				for i := range c.book.runs {
					run, begun := c.book.run(i)
					require.False(t, begun.Before(run.Tick), "gocron's timer was set before the clock was")
				}
			})
		})
	}
}
