package scheduler_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// Names that nodes cannot have, or that nothing could show, are refused; others work.
func TestNamesOfJobs(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica()
		var wrong *scheduler.OptionError
		for _, name := range []string{"", "\xff\xfe"} {
			_, err := r.NewJob(secondly, gocron.NewTask(func() {}), gocron.WithName(name))
			require.Error(t, err, "%q", name)
		}
		names := []string{"a b", "a\nb", "a\x00b", "{a}", "}", "a}b{", "pause/job/a", "ü/☃", "%s", "job/job", "*"}
		for _, name := range names {
			r.add(t, secondly, func() {}, gocron.WithName(name))
		}
		_, err := r.NewJob(minutely, gocron.NewTask(func() {}), gocron.WithName("a b"))
		require.ErrorAs(t, err, &wrong, "two jobs of one name")
		r.Start()
		time.Sleep(3 * time.Second)
		require.Len(t, c.book.ticks(), 3*len(names))
	})
}

// A Quorum that is closed under a Scheduler ends its runs, and Shutdown returns.
func TestQuorumClosedDuringARun(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica()
		r.add(t, secondly, func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
		j := r.add(t, minutely, func() {}, gocron.WithName("other"))
		r.Start()
		time.Sleep(2 * time.Second)
		require.NoError(t, r.q.Close())
		time.Sleep(5 * time.Second)
		require.Len(t, c.book.ended(), 1)
		var skip *scheduler.SkipError
		require.ErrorAs(t, j.RunNow(), &skip)
		require.Equal(t, scheduler.SkipStopped, skip.Reason)
		require.Error(t, r.Healthy())
		r.add(t, secondly, func() {}, gocron.WithName("third"))
		began := time.Now()
		require.NoError(t, r.Shutdown())
		require.Less(t, time.Since(began), time.Second)
	})
}

// A listener that blocks before a run that was ordered does not keep Shutdown from returning in
// time.
func TestListenerThatBlocksAnOrderedRun(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet, scheduler.WithStopTimeout(2*time.Second))
		free := make(chan struct{})
		j := r.add(t, minutely, func() {}, gocron.WithEventListeners(gocron.BeforeJobRuns(func(uuid.UUID, string) { <-free })))
		r.Start()
		time.Sleep(time.Second)
		came := make(chan error, 1)
		go func() { came <- j.RunNow() }()
		time.Sleep(time.Second)
		began := time.Now()
		require.ErrorIs(t, r.Shutdown(), gocron.ErrStopJobsTimedOut)
		require.Less(t, time.Since(began), 10*time.Second)
		var skip *scheduler.SkipError
		require.ErrorAs(t, <-came, &skip)
		require.Equal(t, scheduler.SkipStopped, skip.Reason)
		close(free)
		time.Sleep(5 * time.Second)
		require.Empty(t, c.book.ticks(), "what was refused is not run")
	})
}

// What blocks in gocron has no more time than the runs before it have left.
func TestListenerThatBlocksShutdown(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		free, r := make(chan struct{}), c.replica(quiet, scheduler.WithStopTimeout(2*time.Second))
		defer close(free)
		r.add(t, secondly, func(ctx context.Context) { <-ctx.Done(); time.Sleep(1900 * time.Millisecond) })
		r.add(t, minutely, func() {}, gocron.WithName("other"), gocron.WithEventListeners(gocron.AfterLockError(func(uuid.UUID, string, error) { <-free })))
		r.Start()
		until(at(60).Add(-100 * time.Millisecond)) // gocron has the tick
		began := time.Now()
		require.ErrorIs(t, r.Shutdown(), gocron.ErrStopJobsTimedOut)
		require.Less(t, time.Since(began), 2200*time.Millisecond)
	})
}

// A user's Cron may ask its own job, and is asked under no lock.
func TestCronThatAsksItsJob(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		cron := &asking{}
		r := c.replica(quiet)
		j := r.add(t, gocron.CronJob("own", false), func() {}, gocron.WithCronImplementation(cron))
		cron.job.Store(&j)
		r.Start()
		time.Sleep(5 * time.Second)
		require.GreaterOrEqual(t, len(c.book.ticks()), 4)
	})
}

// asking is a gocron.Cron of each second that looks when its job ran last, and when it runs next.
type asking struct {
	job   atomic.Pointer[gocron.Job]
	depth atomic.Int64
}

func (a *asking) IsValid(string, *time.Location, time.Time) error { return nil }

func (a *asking) Next(after time.Time) time.Time {
	if j := a.job.Load(); j != nil && a.depth.Add(1) == 1 {
		_, _ = (*j).NextRun()
		_ = (*j).Tags()
	}
	defer a.depth.Store(0)
	return after.Truncate(time.Second).Add(time.Second)
}
