//go:build long

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

// A replica whose clock is too far ahead runs no tick, neither in time nor late, and takes none
// away from the others. It says so, once.
func TestReplicaWhoseClockIsAheadRunsNoTick(t *testing.T) {
	for _, test := range []struct {
		name  string
		ahead time.Duration
		opts  []scheduler.Option
	}{
		{"5 s, no catch-up", 5 * time.Second, nil},
		{"2 min, the latest", 2 * time.Minute, []scheduler.Option{scheduler.WithCatchUp(time.Hour, scheduler.CatchUpLatest)}},
		{"2 min, all", 2 * time.Minute, []scheduler.Option{scheduler.WithCatchUp(time.Hour, scheduler.CatchUpAll)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				log := new(journal)
				wrong := c.named("wrong", append(test.opts, ahead(test.ahead), scheduler.WithLogger(log.logger()))...)
				wrong.add(t, tenSecondly, func() {})
				wrong.Start()
				for range 2 {
					r := c.named("right", test.opts...)
					r.add(t, tenSecondly, func() {})
					r.Start()
				}
				until(5*time.Minute + 3*time.Second)
				require.Len(t, c.book.runs, 30, "%v", c.book.tickSeconds())
				for i := range c.book.runs {
					run, begun := c.book.run(i)
					require.Equal(t, "right", run.Lease().Identity())
					require.Less(t, begun.Sub(run.Tick), time.Second)
				}
				require.Equal(t, 30, c.book.reasons()[scheduler.SkipAhead])
				require.Len(t, log.lines("level=WARN"), 1)
				require.Contains(t, log.lines("level=WARN")[0], "clock is ahead of the nodes'")
				require.Equal(t, "clock_ahead", redlock.ErrorType(wrong.Healthy()))
			})
		})
	}
}

// A leader whose clock is ahead resigns, and those whose clocks are right run the ticks.
func TestLeaderWhoseClockIsAheadResigns(t *testing.T) {
	for _, from := range []time.Duration{0, 25 * time.Second} {
		t.Run("from "+from.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				clock, log := &settable{Clock: clockwork.NewRealClock()}, new(journal)
				if from == 0 {
					clock.set(2 * time.Minute)
				}
				wrong := c.named("wrong", scheduler.WithElection("jobs"), scheduler.WithClock(clock), scheduler.WithLogger(log.logger()))
				wrong.add(t, tenSecondly, func() {})
				wrong.Start()
				until(5 * time.Second)
				require.Equal(t, from == 0, wrong.Elector().IsLeader(t.Context()) != nil)
				for range 2 {
					r := c.named("right", scheduler.WithElection("jobs"))
					r.add(t, tenSecondly, func() {})
					r.Start()
				}
				until(from)
				clock.set(2 * time.Minute)
				until(5*time.Minute + 5*time.Second)
				for i := range c.book.runs {
					run, begun := c.book.run(i)
					require.Less(t, begun.Sub(run.Tick), 5*time.Second)
					require.True(t, run.Tick.Before(at(0).Add(from)) || run.Lease().Identity() == "right", run.Tick)
				}
				require.Len(t, c.book.runs, 30, "each tick is run by one of the others")
				require.Error(t, wrong.Elector().IsLeader(t.Context()))
				require.Equal(t, "clock_ahead", redlock.ErrorType(wrong.Healthy()))
				require.Len(t, log.lines("clock is ahead of the nodes'"), 1)
			})
		})
	}
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
