//go:build long

package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// Each run is told as tracers have it: its tick, which attempt it is, whether it is late, and its
// token.
func TestAttemptsAreTold(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a", scheduler.WithDelivery(redlock.AtLeastOnce), scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll))
		r.add(t, tenSecondly, func(ctx context.Context) {
			if run, _ := scheduler.RunFromContext(ctx); run.Tick.Equal(at(10)) && run.Attempt == 1 {
				panic("a bug")
			}
		})
		r.Start()
		until(25 * time.Second)
		c.freeze(0, 1, 2)
		until(35 * time.Second)
		c.thaw(0, 1, 2)
		until(55 * time.Second)
		told := r.runsTold(t)
		slices.Reverse(told)
		require.Len(t, told, len(c.book.ticks()))
		attempts, late := 0, 0
		for i, got := range told {
			run, _ := c.book.run(i)
			require.Equal(t, run.Tick.UnixMilli(), got.Tick)
			require.Equal(t, run.Attempt, got.Attempt)
			require.Equal(t, run.CatchUp, got.Late)
			require.Equal(t, run.FencingToken(), got.Token)
			require.Equal(t, "job", got.Job)
			require.Equal(t, "a", got.By)
			require.Empty(t, got.Trace)
			attempts = max(attempts, run.Attempt)
			if run.CatchUp {
				late++
			}
		}
		require.Equal(t, 2, attempts, "of the tick at 10 s")
		require.NotZero(t, late, "the tick at 30 s")
		require.Equal(t, bulletin.Panicked, told[0].Outcome)
		require.Equal(t, bulletin.OK, told[1].Outcome)
	})
}

// The definition of a job that does not run is told from time to time, and not with each beat; what
// no lease protects has none.
func TestDefinitionIsToldSeldom(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a")
		r.add(t, never, func() {})
		_, err := r.NewJob(never, scheduler.NewTask(func() {}), gocron.WithName("everywhere"), gocron.WithDisabledDistributedJobLocker(true))
		require.NoError(t, err)
		r.Start()
		until(5 * time.Second)
		told, last := 1, time.Duration(0)
		for range 4 * 60 * 6 {
			time.Sleep(10 * time.Second)
			card, found, err := r.q.Board().Card(t.Context(), bulletin.Jobs, "job/job")
			require.NoError(t, err)
			require.True(t, found)
			if card.Age < last {
				told++
			}
			last = card.Age
			require.LessOrEqual(t, last, 16*time.Minute)
		}
		require.GreaterOrEqual(t, told, 4*60/16)
		require.LessOrEqual(t, told, 4*60/5+1)
		require.Len(t, r.definitions(t), 1)
	})
}

// Skips of one job are counted for each reason by itself, once each, also over several beats.
func TestSkipsAreCountedByTheirReason(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a")
		r.add(t, secondly, func() {})
		r.Start()
		until(5500 * time.Millisecond)
		c.freeze(0, 1, 2, 3, 4) // nobody hears of that, over several reports
		until(29500 * time.Millisecond)
		c.thaw(0, 1, 2, 3, 4)
		until(45500 * time.Millisecond)
		_, err := r.q.Pause(t.Context(), "job/job", redlock.PauseOptions{By: "Ann"})
		require.NoError(t, err)
		until(80500 * time.Millisecond)
		_, err = r.q.Resume(t.Context(), "job/job", redlock.PauseOptions{})
		require.NoError(t, err)
		until(100 * time.Second)
		want := make(map[string]int)
		c.book.mu.Lock()
		tick := func(e *scheduler.SkipError) int64 { return e.Tick.UnixMilli() }
		failed := make(map[int64]string)
		for _, e := range c.book.skips {
			switch {
			case e.Reason == scheduler.SkipPaused:
				want["paused"]++
			case e.Pending:
				failed[tick(e)] = string(e.Reason)
			case e.Reason == scheduler.SkipSuperseded:
				want[failed[tick(e)]]++
			}
		}
		c.book.mu.Unlock()
		counts, last := r.skipsTold(t)
		require.Equal(t, want, counts)
		require.Equal(t, 35, counts["paused"])
		require.Greater(t, len(counts), 1, "%v", counts)
		require.Equal(t, at(80).UnixMilli(), last["paused"].Tick)
		for reason, skip := range last {
			require.Equal(t, r.q.Identity(), skip.By)
			require.Equal(t, "job", skip.Job)
			if reason != "paused" {
				require.Empty(t, skip.Holder)
			}
		}
	})
}

// The next tick is strictly after now, by the job's own zone; a job that is over has none.
func TestNextTickIsTold(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a", scheduler.WithLocation(time.FixedZone("two", 2*60*60)))
		for name, d := range map[string]gocron.JobDefinition{
			"crontab":  gocron.CronJob("30 0 * * * *", true),
			"daily":    gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(4, 30, 0))),
			"interval": gocron.DurationJob(45 * time.Minute),
			"over":     gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(1))),
			"once":     gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(60))),
		} {
			_, err := r.NewJob(d, scheduler.NewTask(func() {}), gocron.WithName(name))
			require.NoError(t, err)
		}
		r.Start()
		until(5 * time.Second)
		jobs := r.definitions(t)
		require.Len(t, jobs, 5)
		require.Equal(t, at(30).UnixMilli(), jobs["crontab"].Next)
		require.Equal(t, at(9000).UnixMilli(), jobs["daily"].Next, "half past four is half past two of UTC")
		require.InDelta(t, at(45*60).UnixMilli(), jobs["interval"].Next, 3000)
		require.Equal(t, at(60).UnixMilli(), jobs["once"].Next)
		require.Zero(t, jobs["over"].Next)
		require.Equal(t, "two", jobs["daily"].Zone)
		require.Empty(t, jobs["interval"].Zone)
		until(45 * time.Second)
		require.Equal(t, at(3630).UnixMilli(), r.definitions(t)["crontab"].Next)
		until(75 * time.Second)
		require.Zero(t, r.definitions(t)["once"].Next, "it is over")
		for range 30 {
			time.Sleep(7 * time.Minute)
			told := time.Now().Add(-16 * time.Minute)
			for _, name := range []string{"crontab", "daily", "interval"} {
				require.Greater(t, r.definitions(t)[name].Next, told.UnixMilli(), name)
			}
		}
	})
}

// However many jobs skip their ticks, a beat tells of so many.
func TestSkipsHaveABound(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a")
		const jobs = 300
		for i := range jobs {
			_, err := r.NewJob(secondly, scheduler.NewTask(func() {}), gocron.WithName(fmt.Sprint(i)))
			require.NoError(t, err)
		}
		_, err := r.q.Pause(t.Context(), redlock.AllKeys, redlock.PauseOptions{By: "Ann"})
		require.NoError(t, err)
		r.Start()
		told := func() (n int) {
			for i := range jobs {
				entries, err := r.q.Board().Journal(t.Context(), fmt.Sprintf("%s/job/%d", bulletin.Skips, i), 1)
				require.NoError(t, err)
				n += len(entries)
			}
			return n
		}
		for told() == 0 {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		require.Equal(t, 256, told(), "by the first report after the first ticks")
	})
}
