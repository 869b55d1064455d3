package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// gocron's singleton mode means on all replicas what it means on one. It was refused.
func TestSingletonModeIsCarriedOut(t *testing.T) {
	for _, test := range []struct {
		name string
		mode gocron.LimitMode
		runs int
	}{
		{"reschedule", gocron.LimitModeReschedule, 10}, // at 0, 3, 6, ... of 30 s
		{"wait", gocron.LimitModeWait, 12},             // one after the other
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for range 2 {
					r := c.replica(scheduler.WithOverlap(scheduler.OverlapSkip))
					r.add(t, secondly, func() { time.Sleep(2500 * time.Millisecond) }, gocron.WithSingletonMode(test.mode))
					r.Start()
				}
				time.Sleep(30*time.Second + 100*time.Millisecond)
				synctest.Wait()
				require.Equal(t, 1, c.book.most)
				require.InDelta(t, test.runs, len(c.book.runs), 1)
			})
		})
	}
}

// Options for all jobs are applied to each, are looked at, and give way to the job's own. They were
// refused.
func TestGlobalJobOptions(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var global, own int
		count := func(n *int) gocron.JobOption {
			return gocron.WithEventListeners(gocron.AfterJobRuns(func(uuid.UUID, string) { *n++ }))
		}
		r := c.replica(scheduler.WithGlobalJobOptions(gocron.WithTags("all")), scheduler.WithGlobalJobOptions(count(&global), gocron.WithSingletonMode(gocron.LimitModeWait)))
		j := r.add(t, tenSecondly, func() {})
		other, err := r.NewJob(tenSecondly, scheduler.NewTask(func() {}), gocron.WithName("other"), count(&own))
		require.NoError(t, err)
		r.Start()
		until(25 * time.Second)
		require.Equal(t, []string{"all"}, j.Tags())
		require.Equal(t, []string{"all"}, other.Tags())
		require.Equal(t, 2, global)
		require.Equal(t, 2, own)
		other, err = r.Update(other.ID(), tenSecondly, scheduler.NewTask(func() {}), gocron.WithName("other"))
		require.NoError(t, err)
		require.Equal(t, []string{"all"}, other.Tags())

		limited := c.replica(scheduler.WithGlobalJobOptions(gocron.WithLimitedRuns(1)))
		_, err = limited.NewJob(tenSecondly, scheduler.NewTask(func() {}), gocron.WithName("job"))
		requireInvalid(t, err, "scheduler: gocron.WithLimitedRuns: each replica would count its own runs: remove the job when the work is done")
		_, err = r.NewJob(tenSecondly, scheduler.NewTask(func() {}), gocron.WithName("nil"), nil)
		requireInvalid(t, err, "scheduler: gocron.JobOption: option 1 is nil")
	})
}
