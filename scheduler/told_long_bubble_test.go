//go:build long

package scheduler_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// A replica tells what its jobs are, which it runs, and takes its card down when it stops.
func TestCardOfAReplica(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r, reader := c.named("a", scheduler.WithCatchUp(time.Hour, scheduler.CatchUpLatest)), c.named("reader", scheduler.WithoutCard())
		r.add(t, gocron.CronJob("30 */5 * * * *", true), func() { time.Sleep(20 * time.Second) })
		for name, d := range map[string]gocron.JobDefinition{"hourly": gocron.DurationJob(time.Hour), "over": gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(2)))} {
			_, err := r.NewJob(d, scheduler.NewTask(func() {}), gocron.WithName(name))
			require.NoError(t, err)
		}
		_, err := r.NewJob(gocron.DurationJob(time.Hour), scheduler.NewTask(func() {}), gocron.WithName("everywhere"), gocron.WithDisabledDistributedJobLocker(true))
		require.NoError(t, err)
		require.Empty(t, reader.processes(t), "before Start")
		r.Start()
		until(15 * time.Second)
		jobs := reader.definitions(t)
		require.Len(t, jobs, 3)
		got := jobs["job"]
		require.Equal(t, at(30).UnixMilli(), got.Next)
		require.Equal(t, []string{"job/job", "30 */5 * * * *", "UTC", "at most once", "latest", "skip", r.q.Identity()},
			[]string{got.Key, got.Schedule, got.Zone, got.Delivery, got.CatchUp, got.Overlap, got.By})
		require.True(t, got.Orders)
		require.Zero(t, jobs["over"].Next)
		require.Greater(t, jobs["hourly"].Next, at(15).UnixMilli())
		until(45 * time.Second)
		require.Equal(t, at(330).UnixMilli(), reader.definitions(t)["job"].Next, "told again with its run")
		processes := reader.processes(t)
		require.Len(t, processes, 1)
		require.Len(t, processes[0].Running, 1)
		require.Equal(t, "job", processes[0].Running[0].Job)
		require.Equal(t, at(30).UnixMilli(), processes[0].Running[0].Tick)
		run, _ := c.book.run(len(c.book.ticks()) - 1)
		require.Equal(t, run.FencingToken(), processes[0].Running[0].Token)
		require.True(t, slices.Contains(processes[0].Jobs, "hourly"))
		until(75 * time.Second)
		require.Empty(t, reader.processes(t)[0].Running)
		until(50 * time.Minute)
		require.Len(t, reader.definitions(t), 3, "told again before they expire")
		require.NoError(t, r.StopJobs())
		synctest.Wait()
		require.Empty(t, reader.processes(t))
		time.Sleep(bulletin.JobLifetime)
		require.Empty(t, reader.definitions(t))
	})
}

// Skips that an operator acts on are counted by their reason; others, and those that are not final,
// are not told.
func TestSkipsAreTold(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a, b := c.named("a"), c.named("b")
		for _, r := range []*replica{a, b} {
			r.add(t, secondly, func() { time.Sleep(200 * time.Millisecond) })
			r.Start()
		}
		until(12 * time.Second)
		_, err := a.q.Pause(t.Context(), "job/job", redlock.PauseOptions{By: "Ann"})
		require.NoError(t, err)
		until(40 * time.Second)
		_, err = a.q.Resume(t.Context(), "job/job", redlock.PauseOptions{})
		require.NoError(t, err)
		until(70 * time.Second)
		require.NotZero(t, c.book.reasons()[scheduler.SkipHeld]+c.book.reasons()[scheduler.SkipDone])
		counts, last := a.skipsTold(t)
		require.Equal(t, map[string]int{"paused": c.book.reasons()[scheduler.SkipPaused]}, counts)
		require.Greater(t, counts["paused"], 40, "of two replicas")
		require.Equal(t, "Ann", last["paused"].Holder)
		require.NotZero(t, last["paused"].Tick)
		require.Contains(t, []string{a.q.Identity(), b.q.Identity()}, last["paused"].By)
	})
}
