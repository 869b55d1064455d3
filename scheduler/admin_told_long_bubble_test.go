//go:build long

package scheduler_test

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/scheduler"
)

// A job's card says what it is and when it is due; it is told at once, with each run, and from time
// to time.
func TestJobIsTold(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.operator()
		r := c.named("a", scheduler.WithElection("jobs"), scheduler.WithCatchUp(time.Hour, scheduler.CatchUpLatest), scheduler.WithOverlap(scheduler.OverlapQueue))
		add := func(name string, d gocron.JobDefinition, opts ...gocron.JobOption) gocron.Job {
			j, err := r.NewJob(d, scheduler.NewTask(func() {}), append(opts, gocron.WithName(name))...)
			require.NoError(t, err)
			return j
		}
		add("hourly", gocron.CronJob("0 * * * *", false))
		gone := add("gone", gocron.CronJob("30 4 * * *", false))
		add("every", gocron.DurationJob(7*time.Minute))
		add("once", gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(time.Now().Add(90*time.Second))))
		add("everywhere", gocron.CronJob("* * * * *", false), gocron.WithDisabledDistributedJobLocker(true))
		r.Start()
		until(2 * time.Second)
		is := func(name string) admin.JobStatus {
			j, err := a.Job(t.Context(), name)
			require.NoError(t, err, name)
			return j
		}
		now := time.Now()
		hourly := is("hourly")
		require.Equal(t, []string{"0 * * * *", "UTC", "jobs", "at most once", "latest", "queue"},
			[]string{hourly.Schedule, hourly.Zone, hourly.Election, hourly.Delivery, hourly.CatchUp, hourly.Overlap})
		require.True(t, hourly.Orders)
		require.Equal(t, now.Truncate(time.Hour).Add(time.Hour).UnixMilli(), hourly.Next.UnixMilli())
		require.Contains(t, is("every").Schedule, "7m")
		require.InDelta(t, 7*time.Minute, is("every").Next.Sub(now), float64(10*time.Second))
		require.InDelta(t, 88*time.Second, is("once").Next.Sub(now), float64(5*time.Second))
		_, err := a.Job(t.Context(), "everywhere")
		require.ErrorIs(t, err, admin.ErrNoJob)
		names := []string{}
		for j, err := range a.Jobs(t.Context()) {
			require.NoError(t, err)
			names = append(names, j.Name)
		}
		require.Equal(t, []string{"every", "gone", "hourly", "once"}, names)

		require.NoError(t, r.RemoveJob(gone.ID()))
		until(30 * time.Second)
		for range 8 {
			time.Sleep(10 * time.Minute)
			j := is("hourly")
			require.False(t, j.Late)
			require.LessOrEqual(t, j.Age, 16*time.Minute)
			require.True(t, j.Next.After(time.Now()), "%v is not after %v", j.Next, time.Now())
			require.False(t, is("every").Late)
		}
		_, err = a.Job(t.Context(), "gone")
		require.ErrorIs(t, err, admin.ErrNoJob)
		require.Zero(t, is("once").Next)
		require.False(t, is("once").Late)
		require.Equal(t, admin.OutcomeOK, is("once").Last.Outcome)
	})
}
