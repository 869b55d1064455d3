package scheduler_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

func TestStopAndStartAgain(t *testing.T) {
	for _, mode := range []struct {
		name string
		opts []scheduler.Option
	}{{"locker", nil}, {"leader", []scheduler.Option{scheduler.WithElection("jobs")}}} {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.replica(mode.opts...)
				j := r.add(t, tenSecondly, func() {})
				require.NoError(t, r.StopJobs(), "before the first Start")
				require.ErrorIs(t, j.RunNow(), gocron.ErrJobRunNowFailed, "gocron itself would hang at the next Start")
				r.Start()
				r.Start()
				until(12 * time.Second)
				require.NoError(t, r.StopJobs())
				require.NoError(t, r.StopJobs())
				require.ErrorContains(t, j.RunNow(), "the Scheduler is not started")
				until(35 * time.Second)
				r.Start()
				until(37 * time.Second)
				require.Equal(t, []int{10}, c.book.tickSeconds())
				require.NoError(t, j.RunNow())
				until(41 * time.Second)
				require.Len(t, c.book.runs, 3)
				require.True(t, c.book.runs[1].Tick.IsZero(), "a tick from before the stop is not taken for that of RunNow")
				require.True(t, c.book.runs[2].Tick.Equal(at(40)))
				require.NoError(t, r.StopJobsWithContext(t.Context()))
				require.NoError(t, r.ShutdownWithContext(t.Context()))
				require.NoError(t, r.Shutdown())
				require.NoError(t, r.StopJobs())
				require.Error(t, j.RunNow())
			})
		})
	}
}

// A Scheduler that was shut down takes no part in the election: it could not run anything.
func TestStartAfterShutdownDoesNothing(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(scheduler.WithElection("jobs"))
		r.add(t, secondly, func() {})
		require.NoError(t, r.Shutdown())
		r.Start()
		until(5 * time.Second)
		require.ErrorIs(t, r.Elector().IsLeader(t.Context()), elector.ErrNotLeader)
		require.ErrorIs(t, r.Elector().Healthy(), elector.ErrNotRunning)
		require.Empty(t, c.book.ticks())
		require.Empty(t, r.Jobs())
	})
}

// A job is not made by a Scheduler that could not run it.
func TestNewJobAfterShutdownIsRefused(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica()
		j := r.add(t, secondly, func() {})
		require.NoError(t, r.StopJobs())
		task := scheduler.NewTask(func() {})
		_, err := r.NewJob(secondly, task, gocron.WithName("stopped"))
		require.NoError(t, err, "Start is yet to come")
		require.NoError(t, r.Shutdown())
		for _, make := range []func() (gocron.Job, error){
			func() (gocron.Job, error) { return r.NewJob(secondly, task, gocron.WithName("another")) },
			func() (gocron.Job, error) { return r.Update(j.ID(), secondly, task, gocron.WithName("job")) },
		} {
			made, err := make()
			require.ErrorIs(t, err, scheduler.ErrNotRunning)
			require.ErrorContains(t, err, "make another one with New")
			require.Equal(t, "not_running", redlock.ErrorType(err))
			require.Nil(t, made)
		}
	})
}

// After a stop that did not wait for a run, the replica may lead again, and the run keeps its
// lease.
func TestCandidateAgainAfterAStopThatTimedOut(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(scheduler.WithElection("jobs"), scheduler.WithStopTimeout(2*time.Second))
		var once sync.Once
		r.add(t, secondly, func() { once.Do(func() { time.Sleep(20 * time.Second) }) })
		r.Start()
		until(1500 * time.Millisecond)
		require.ErrorIs(t, r.StopJobs(), gocron.ErrStopJobsTimedOut)
		synctest.Wait()
		_, err := r.q.Holder(t.Context(), "election/jobs")
		require.ErrorIs(t, err, redlock.ErrNotHeld, "no run keeps the leadership")
		r.Start()
		until(15 * time.Second)
		require.NoError(t, r.Elector().IsLeader(t.Context()))
		require.Equal(t, []int{1}, c.book.tickSeconds(), "the run goes on")
		until(30 * time.Second)
		require.Greater(t, len(c.book.ticks()), 3)
		require.Equal(t, 1, c.book.most)
	})
}

// The ticks of an updated job are those of the new definition, and what holds the old one still
// works.
func TestUpdate(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica()
		old := r.add(t, tenSecondly, func() {})
		r.Start()
		until(12 * time.Second)
		_, err := r.Update(old.ID(), secondly, gocron.NewTask(func() {}), gocron.WithName("job"))
		require.ErrorContains(t, err, "use scheduler.NewTask")
		j, err := r.Update(old.ID(), secondly, scheduler.NewTask(func() {}), gocron.WithName("job"))
		require.NoError(t, err)
		require.Equal(t, old.ID(), j.ID())
		until(14500 * time.Millisecond)
		require.Equal(t, []int{10, 13, 14}, c.book.tickSeconds())
		require.NoError(t, old.RunNow())
		time.Sleep(100 * time.Millisecond)
		require.NoError(t, r.Jobs()[0].RunNow())
		synctest.Wait()
		require.Empty(t, c.book.skips)
		require.Len(t, c.book.runs, 5)
		require.NoError(t, r.RemoveJob(j.ID()))
		require.ErrorIs(t, old.RunNow(), gocron.ErrJobNotFound)
	})
}

// What is added while the Scheduler runs is run, and by Jobs it is found.
func TestNewJobAfterStart(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica()
		r.Start()
		until(5 * time.Second)
		r.add(t, tenSecondly, func() {})
		until(21 * time.Second)
		require.Equal(t, []int{10, 20}, c.book.tickSeconds())
		require.NoError(t, r.Jobs()[0].RunNow())
		synctest.Wait()
		require.Len(t, c.book.runs, 3)
		_, err := r.Scheduler.Scheduler.NewJob(secondly, gocron.NewTask(func() {}), gocron.WithName("past us"))
		require.NoError(t, err)
		until(25 * time.Second)
		require.Len(t, c.book.runs, 3, "a job that was added behind the Scheduler's back is not run")
	})
}

// RunNow is a run of its own: it excludes others, is excluded by them, and is no tick.
func TestRunNow(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a, b := c.named("a"), c.named("b")
		listen, errs := told()
		task := func() { time.Sleep(3 * time.Second) }
		ja, jb := a.add(t, tenSecondly, task, listen), b.add(t, tenSecondly, task, listen)
		a.Start()
		b.Start()
		until(5 * time.Second)
		require.NoError(t, ja.RunNow())
		until(6 * time.Second)
		require.ErrorContains(t, refusedRun(t, jb, scheduler.SkipOverlap, "a"), `scheduler: job "job" is skipped: overlap by a: `)
		require.Empty(t, *errs)
		until(9 * time.Second)
		require.NoError(t, jb.RunNow())
		until(25 * time.Second)
		require.Equal(t, 1, c.book.most)
		require.Len(t, c.book.runs, 3)
		require.True(t, c.book.runs[0].Tick.IsZero())
		require.True(t, c.book.runs[1].Tick.IsZero())
		require.True(t, c.book.runs[2].Tick.Equal(at(20)), "10 s was overlapped")
	})
}
