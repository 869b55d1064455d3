//go:build long

package scheduler_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

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
