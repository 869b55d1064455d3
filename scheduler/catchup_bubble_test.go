package scheduler_test

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// A tick that nobody could ask for is run within the grace, and not later.
func TestGrace(t *testing.T) {
	for _, late := range []time.Duration{scheduler.Grace - 3*time.Second, scheduler.Grace + time.Second} {
		t.Run(late.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.replica(quiet)
				r.add(t, tenSecondly, func() {})
				r.Start()
				until(at(19))
				c.freeze()
				until(at(20).Add(late))
				c.thaw()
				until(at(31))
				want := []int{10, 20, 30}
				if late > scheduler.Grace {
					want = []int{10, 30}
				}
				require.Equal(t, want, c.book.seconds())
				require.Equal(t, 3-len(want), c.book.reasons()[scheduler.SkipMissed])
			})
		})
	}
}

// A replica that did not get the lease does not run the tick when the holder is done; and the
// leader takes leases too, where gocron asks either an elector or a locker.
func TestTrap01And02LoserDoesNotRunTheTickLater(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for range 3 {
					r := c.replica(append(mode.opts, quiet, jobOptions(within(time.Minute, scheduler.CatchUpAll), scheduler.WithDelivery(scheduler.AtLeastOnce), scheduler.WithOverlap(scheduler.OverlapQueue)))...)
					r.add(t, tenSecondly, func() { time.Sleep(300 * time.Millisecond) })
					r.Start()
				}
				until(at(10).Add(100 * time.Millisecond))
				_, err := c.replicas[0].q.Holder(t.Context(), jobKey)
				require.NoError(t, err)
				until(at(25))
				require.Equal(t, []int{10, 20}, c.book.seconds())
			})
		})
	}
}

// The leader is killed: no tick is lost that is to be caught up, and none is run twice. A follower
// keeps no ticks, and its first run as leader is not late.
func TestTrap05And14Failover(t *testing.T) {
	for _, policy := range []scheduler.CatchUp{scheduler.CatchUpNone, scheduler.CatchUpAll} {
		t.Run(policy.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for range 3 {
					r := c.replica(scheduler.WithElection("jobs"), quiet, jobOptions(within(time.Minute, policy)))
					r.add(t, secondly, func() {})
					r.Start()
				}
				until(at(5).Add(time.Second / 2))
				for _, r := range c.replicas {
					if r.Elector().IsLeader(t.Context()) == nil {
						c.kill(r)
						break
					}
				}
				until(at(14).Add(time.Second / 2))
				got := c.book.seconds()
				require.Equal(t, 14, got[len(got)-1])
				require.IsIncreasing(t, got)
				if policy == scheduler.CatchUpAll {
					require.Len(t, got, 14)
				}
				require.Greater(t, len(got), 8)
			})
		})
	}
}

// What people read of the next runs is right before the job has begun, and while it runs.
func TestNextRuns(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet)
		cron := r.add(t, tenSecondly, func() {})
		every := r.add(t, gocron.DurationJob(7*time.Second), func() {}, gocron.WithName("every"))
		r.Start()
		until(at(21))
		next, err := cron.NextRuns(2)
		require.NoError(t, err)
		require.Equal(t, []time.Time{at(30), at(40)}, next)
		last, err := cron.LastRunStartedAt()
		require.NoError(t, err)
		require.WithinDuration(t, at(20), last, time.Second)
		run, err := every.NextRun()
		require.NoError(t, err)
		require.WithinDuration(t, at(21).Add(time.Second/2), run, 100*time.Millisecond, "it counts from when it was made")
		require.Equal(t, gocron.CronJobSchedule{Crontab: "*/10 * * * * *"}, cron.Schedule())
		require.NoError(t, r.Shutdown())
		_, err = cron.NextRun()
		require.ErrorIs(t, err, gocron.ErrSchedulerBusy)
	})
}
