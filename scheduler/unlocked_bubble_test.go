package scheduler_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// everywhere has a job run on every replica, without a lease.
var everywhere = gocron.WithDisabledDistributedJobLocker(true)

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
