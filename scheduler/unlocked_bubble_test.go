package scheduler_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// everywhere has a job run on every replica, without a lease.
var everywhere = gocron.WithDisabledDistributedJobLocker(true)

// Nobody knows which ticks were run of a job without a lease, so none is caught up: neither after a
// restart, nor by a new leader, nor where the job had a lease before.
func TestUnlockedJobsMissNoTick(t *testing.T) {
	for _, late := range []struct {
		name  string
		catch scheduler.CatchUp
	}{{"latest", scheduler.CatchUpLatest}, {"all", scheduler.CatchUpAll}} {
		t.Run(late.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				catchUp := scheduler.WithCatchUp(time.Hour, late.catch)
				had := c.replica(catchUp)
				had.add(t, tenSecondly, func() {})
				had.Start()
				until(25 * time.Second)
				require.NoError(t, had.Shutdown())
				until(2 * time.Minute)
				for _, opts := range [][]scheduler.Option{{catchUp}, {catchUp, scheduler.WithElection("jobs")}} {
					var hourly, once atomic.Int64
					r := c.replica(opts...)
					r.add(t, gocron.CronJob("0 0 * * * *", true), func() { hourly.Add(1) }, everywhere)
					_, err := r.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(1))), scheduler.NewTask(func() { once.Add(1) }),
						gocron.WithName("once"), everywhere)
					require.NoError(t, err)
					r.Start()
					time.Sleep(10 * time.Minute)
					require.Zero(t, hourly.Load())
					require.Zero(t, once.Load())
					require.NoError(t, r.Shutdown())
				}
			})
		})
	}
}

// Without a lease it is gocron that keeps runs of a job from going on beside each other.
func TestUnlockedJobsKeepTheirSingletonMode(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica()
		var running, most, runs atomic.Int64
		r.add(t, secondly, func() {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(3500 * time.Millisecond)
			running.Add(-1)
			runs.Add(1)
		}, everywhere, gocron.WithSingletonMode(gocron.LimitModeReschedule))
		r.Start()
		until(30 * time.Second)
		require.EqualValues(t, 1, most.Load())
		require.Greater(t, runs.Load(), int64(4))
	})
}

// Jobs without a lease are not paused.
func TestUnlockedJobsAreNotPaused(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica()
		var runs atomic.Int64
		r.add(t, secondly, func() { runs.Add(1) }, everywhere)
		r.Start()
		_, err := r.q.Pause(t.Context(), redlock.AllKeys, redlock.PauseOptions{})
		require.NoError(t, err)
		was := runs.Load()
		time.Sleep(10 * time.Second)
		require.EqualValues(t, 10, runs.Load()-was)
	})
}
