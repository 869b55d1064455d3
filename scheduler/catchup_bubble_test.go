package scheduler_test

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

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

// Of ticks that nobody could ask for, those within the grace are run late, or those that the policy
// says.
func TestCatchUp(t *testing.T) {
	for _, test := range []struct {
		name   string
		back   int // when the nodes are
		window time.Duration
		policy scheduler.CatchUp
		late   []int
	}{
		{"none", 57, 0, scheduler.CatchUpNone, nil},
		{"none, within the grace", 52, 0, scheduler.CatchUpNone, []int{50}},
		{"latest", 57, time.Minute, scheduler.CatchUpLatest, []int{50}},
		{"all", 57, time.Minute, scheduler.CatchUpAll, []int{30, 40, 50}},
		{"all, window passed", 57, 12 * time.Second, scheduler.CatchUpAll, []int{50}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for range 2 {
					r := c.replica(quiet, jobOptions(within(test.window, test.policy)))
					r.add(t, tenSecondly, func() { time.Sleep(100 * time.Millisecond) })
					r.Start()
				}
				until(at(25))
				c.freeze()
				until(at(test.back))
				c.thaw()
				until(at(71))
				require.Equal(t, append(append([]int{10, 20}, test.late...), 60, 70), c.book.seconds())
				require.Equal(t, 1, c.book.most)
				require.Equal(t, len(test.late) < 3, c.book.reasons()[scheduler.SkipMissed]+c.book.reasons()[scheduler.SkipSuperseded] > 0)
			})
		})
	}
}
