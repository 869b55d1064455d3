//go:build long

package scheduler_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// What a replica runs is on its card while it does, and the card goes with the replica.
func TestRunningRunsAreTold(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.operator()
		r := c.named("a")
		r.add(t, gocron.CronJob("0 * * * * *", true), func() { time.Sleep(25 * time.Second) })
		r.Start()
		running := func() []admin.Run {
			all, err := a.Replicas(t.Context())
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.Equal(t, r.q.Identity(), all[0].Identity)
			require.Equal(t, []string{"job"}, all[0].Jobs)
			return all[0].Running
		}
		until(59 * time.Second)
		require.Empty(t, running())
		until(75 * time.Second)
		require.Len(t, running(), 1)
		now, err := a.Running(t.Context(), "job")
		require.NoError(t, err)
		require.Equal(t, now.ID(), running()[0].ID())
		require.Equal(t, at(60).UnixMilli(), running()[0].Tick.UnixMilli())
		until(100 * time.Second)
		require.Empty(t, running())
		require.NoError(t, r.StopJobs())
		synctest.Wait()
		all, err := a.Replicas(t.Context())
		require.NoError(t, err)
		require.Empty(t, all)
	})
}

// Skips that an operator acts on are told, counted by their reason; those that are as they should
// be are not, nor those of followers.
func TestSkipsOfALeaderAreTold(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.operator()
		for _, name := range []string{"a", "b", "c"} {
			r := c.named(name, scheduler.WithElection("jobs"))
			r.add(t, secondly, func() { time.Sleep(2500 * time.Millisecond) })
			r.Start()
		}
		until(10 * time.Second)
		_, err := a.Pause(t.Context(), admin.Job("job"), admin.PauseOptions{Reason: "x"})
		require.NoError(t, err)
		until(60 * time.Second)
		skips, err := a.Skips(t.Context(), "job", 10)
		require.NoError(t, err)
		require.Len(t, skips, 2, "%v", skips)
		require.Equal(t, "paused", skips[0].Reason)
		require.Equal(t, "ann", skips[0].By)
		require.Greater(t, skips[0].Count, 10)
		require.Less(t, skips[0].Count, 55)
		require.Equal(t, "overlap", skips[1].Reason)
		require.Equal(t, skips[0].Replica, skips[1].Replica)
		require.Equal(t, 5, skips[0].Sources)
		require.Less(t, at(60).Sub(skips[0].Tick), 13*time.Second)
	})
}

// How each run ended is told, whatever became of it, with what people look for.
func TestOutcomesOfRuns(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a := c.operator()
		r := c.replica(scheduler.WithTracer(traced{c.book}))
		var n atomic.Int64
		secret := errors.New("postgres://user:password@host")
		r.add(t, tenSecondly, func(ctx context.Context) error {
			time.Sleep(1500 * time.Millisecond)
			switch n.Add(1) {
			case 2:
				return secret
			case 3:
				panic("a bug")
			case 4:
				for i := range 5 {
					c.fleet.Node(i).FlushAll()
				}
				_ = r.q // its lease is lost when nobody has it
				for i := range 5 {
					require.NoError(t, c.fleet.Node(i).Freeze())
				}
				<-ctx.Done()
				for i := range 5 {
					require.NoError(t, c.fleet.Node(i).Thaw())
				}
				return context.Cause(ctx)
			}
			return nil
		})
		r.Start()
		until(35 * time.Second)
		runs, err := a.Runs(t.Context(), "job", 20)
		require.NoError(t, err)
		require.Len(t, runs, 3)
		for i, want := range []struct {
			outcome admin.Outcome
			err     string
		}{{admin.OutcomePanicked, "panic"}, {admin.OutcomeFailed, "*errors.errorString"}, {admin.OutcomeOK, ""}} {
			run := runs[i]
			require.Equal(t, want.outcome, run.Outcome)
			require.Equal(t, want.err, run.Error)
			require.Equal(t, at((3-i)*10).UnixMilli(), run.Tick.UnixMilli())
			require.Equal(t, 1, run.Attempt)
			require.False(t, run.CatchUp)
			require.Equal(t, 5, run.Sources)
			require.Equal(t, "4bf92f3577b34da6a3ce929d0e0e4736", run.TraceID)
			require.Equal(t, r.q.Identity(), run.Replica)
			require.InDelta(t, run.Tick.UnixMilli(), run.Began.UnixMilli(), 100)
			require.Empty(t, run.Order)
			require.Equal(t, 1500*time.Millisecond, run.Took)
			if i > 0 {
				require.Greater(t, runs[i-1].FencingToken, run.FencingToken)
			}
		}
		until(75 * time.Second)
		runs, err = a.Runs(t.Context(), "job", 20)
		require.NoError(t, err)
		lost := false
		for _, run := range runs {
			lost = lost || run.Outcome == admin.OutcomeLost && run.Tick.UnixMilli() == at(40).UnixMilli()
		}
		require.True(t, lost, "%v", runs)
	})
}
