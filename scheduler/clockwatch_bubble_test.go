package scheduler_test

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// A tick that a replica with a wrong clock found missed, and that is not due yet, is not run
// either.
func TestReplicaWhoseClockIsAheadCatchesUpNothing(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		catchUp, minutely := scheduler.WithCatchUp(time.Hour, scheduler.CatchUpAll), gocron.CronJob("* * * * *", false)
		r := c.named("right", catchUp)
		r.add(t, minutely, func() {})
		r.Start()
		until(65 * time.Second)
		require.NoError(t, r.Shutdown())
		until(66 * time.Second)
		wrong := c.named("wrong", catchUp, ahead(2*time.Minute))
		wrong.add(t, minutely, func() {})
		wrong.Start()
		until(115 * time.Second)
		require.Equal(t, []int{60}, c.book.tickSeconds())
		require.Empty(t, c.book.reasons(), "it does not tell of ticks that others have not come to yet")
	})
}

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

// A late tick whose lease is to be asked for when the clock is set ahead is not.
func TestLateTickOfAReplicaWhoseClockIsAhead(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		clock := &settable{Clock: clockwork.NewRealClock()}
		r := c.replica(scheduler.WithClock(clock), scheduler.WithCatchUp(time.Hour, scheduler.CatchUpLatest), scheduler.WithDelivery(redlock.AtLeastOnce))
		r.add(t, tenSecondly, func() { panic("ouch") })
		r.Start()
		until(12 * time.Second) // it has been tried twice, and rests
		require.Len(t, c.book.runs, 2)
		clock.set(5 * time.Second)
		until(14 * time.Second)
		require.Len(t, c.book.runs, 2)
		require.Equal(t, 1, c.book.reasons()[scheduler.SkipAhead])
	})
}

// A clock that is behind is said, once. With an election the ticks are as late.
func TestLeaderWhoseClockIsBehindSaysSo(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		log := new(journal)
		r := c.replica(scheduler.WithElection("jobs"), ahead(-2*time.Minute), scheduler.WithLogger(log.logger()))
		r.add(t, tenSecondly, func() {})
		r.Start()
		until(5 * time.Minute)
		run, begun := c.book.run(20)
		require.Equal(t, 2*time.Minute, begun.Sub(run.Tick).Round(time.Second))
		require.Len(t, log.lines("level=WARN"), 1)
		require.Contains(t, log.lines("level=WARN")[0], "clock is behind the nodes'")
		require.Equal(t, "clock_behind", redlock.ErrorType(r.Healthy()))
	})
}
