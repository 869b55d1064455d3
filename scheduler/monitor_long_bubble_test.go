//go:build long

package scheduler_test

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// A follower's list of ticks does not grow, and its first run as leader is not late.
func TestTrap05FollowerKeepsNoTicks(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		tr := &delays{book: c.book}
		monitor := &delayed{}
		leader := c.replica(scheduler.WithElection("jobs"))
		leader.add(t, tenSecondly, func() {})
		leader.Start()
		time.Sleep(time.Second)
		follower := c.replica(scheduler.WithElection("jobs"), scheduler.WithTracer(tr), scheduler.WithGocron(gocron.WithSchedulerMonitor(monitor)))
		j := follower.add(t, tenSecondly, func() {})
		follower.Start()
		until(305 * time.Second)
		next, err := j.NextRuns(1)
		require.NoError(t, err)
		require.True(t, next[0].Equal(at(310)), "%v", next)
		require.NoError(t, leader.Shutdown())
		until(325 * time.Second)
		require.Len(t, tr.started, 2)
		require.Less(t, tr.started[0].Delay, time.Second)
		require.NotEmpty(t, monitor.delays)
		require.Less(t, monitor.delays[0], time.Second)
	})
}

// A monitor that stalls gocron's loop for a second costs no tick.
func TestTrap13StalledLoopLosesNoTick(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		monitor := &stalling{}
		r := c.replica(scheduler.WithGocron(gocron.WithSchedulerMonitor(monitor)))
		other, err := r.NewJob(secondly, scheduler.NewTask(func() {}), gocron.WithName("other"))
		require.NoError(t, err)
		r.add(t, tenSecondly, func() {})
		r.Start()
		until(9800 * time.Millisecond)
		require.NoError(t, r.RemoveJob(other.ID()))
		require.Equal(t, time.Second, monitor.stalled)
		until(25 * time.Second)
		var got []int
		for _, run := range c.book.runs {
			if run.Job == "job" {
				got = append(got, int(run.Tick.Sub(at(0))/time.Second))
			}
		}
		require.Equal(t, []int{10, 20}, got)
	})
}

// WithMonitorStatus alone counts nothing; both options reach gocron through WithGocron, and skips
// are counted too.
func TestTrap06MonitorStatusCountsOnlyBesideMonitor(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		alone, both := &statuses{}, &statuses{}
		first := c.replica(ahead(100*time.Millisecond), scheduler.WithGocron(gocron.WithMonitorStatus(alone)))
		second := c.replica(scheduler.WithGocron(gocron.WithMonitor(both), gocron.WithMonitorStatus(both)))
		for _, r := range []*replica{first, second} {
			r.add(t, tenSecondly, func() {})
			r.Start()
		}
		until(15 * time.Second)
		require.NoError(t, first.Shutdown())
		until(25 * time.Second)
		require.Empty(t, alone.counted)
		require.Equal(t, []gocron.JobStatus{gocron.Success}, alone.timed)
		require.Equal(t, []gocron.JobStatus{gocron.Skip, gocron.Success}, both.counted)
		require.Equal(t, []gocron.JobStatus{gocron.Success}, both.timed)
		require.Equal(t, 1, both.unstated)
	})
}
