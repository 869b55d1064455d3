package scheduler_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// gocron asks either an elector or a locker. Here the leader's runs have leases too.
func TestTrap01LeaderTakesLeases(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(scheduler.WithElection("jobs"))
		r.add(t, tenSecondly, func() { time.Sleep(5 * time.Second) })
		r.Start()
		until(12 * time.Second)
		for _, key := range []string{"job/job", "election/jobs"} {
			_, err := r.q.Holder(t.Context(), key)
			require.NoError(t, err, key)
		}
	})
}

// A replica that did not get the lease does not run the tick when the holder is done.
func TestTrap02LoserDoesNotRunTheTickLater(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		for range 3 {
			r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll), scheduler.WithDelivery(redlock.AtLeastOnce), scheduler.WithOverlap(scheduler.OverlapQueue))
			r.add(t, tenSecondly, func() { time.Sleep(300 * time.Millisecond) })
			r.Start()
		}
		until(25 * time.Second)
		require.Equal(t, []int{10, 20}, c.book.tickSeconds())
	})
}

// Jobs have names, of their own.
func TestTrap07NamesAreRequiredAndDiffer(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica()
		_, err := r.NewJob(secondly, scheduler.NewTask(func() {}))
		require.ErrorContains(t, err, "the job has no name")
		j := r.add(t, secondly, func() {})
		_, err = r.NewJob(secondly, scheduler.NewTask(func() {}), gocron.WithName("job"))
		require.ErrorContains(t, err, `there is a job of the name "job" already`)
		other, err := r.NewJob(secondly, scheduler.NewTask(func() {}), gocron.WithName("other"))
		require.NoError(t, err)
		_, err = r.Update(other.ID(), secondly, scheduler.NewTask(func() {}), gocron.WithName("job"))
		require.ErrorContains(t, err, `there is a job of the name "job" already`)
		_, err = r.Update(j.ID(), secondly, scheduler.NewTask(func() {}), gocron.WithName("job"))
		require.NoError(t, err, "its own name")
		require.NoError(t, r.RemoveJob(j.ID()))
		r.add(t, secondly, func() {})

		var jobs sync.WaitGroup
		refused := make(chan error, 10)
		for range cap(refused) {
			jobs.Go(func() {
				_, err := r.NewJob(secondly, scheduler.NewTask(func() {}), gocron.WithName("at the same time"))
				refused <- err
			})
		}
		jobs.Wait()
		taken := 0
		for range cap(refused) {
			if <-refused == nil {
				taken++
			}
		}
		require.Equal(t, 1, taken)
	})
}

// A panic under the Scheduler's lock is a skipped tick.
func TestTrap09PanicInTheSchedulersLockIsASkip(t *testing.T) {
	bubble(t, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) {
		s, err := scheduler.New(q, scheduler.WithLogger(silent))
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Shutdown()) }()
		listen, errs := told()
		_, err = s.NewJob(secondly, scheduler.NewTask(func() {}), gocron.WithName("job"), listen)
		require.NoError(t, err)
		s.Start()
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		require.Len(t, *errs, 2)
		var panicked *scheduler.PanicError
		require.ErrorAs(t, (*errs)[1], &panicked)
		require.ErrorIs(t, panicked, errPanicky)
	}, redlock.WithTracer(panicky{acquire: true}))
}

// The end of a context that was given for its values does not end the job.
func TestTrap10EndedContextKeepsTheJob(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), valueKey{}, "value"))
		r := c.replica(scheduler.WithContext(ctx), scheduler.WithElection("jobs"))
		var alive []error
		task := scheduler.NewTask(func(ctx context.Context) {
			require.Equal(t, "value", ctx.Value(valueKey{}))
			alive = append(alive, ctx.Err())
		})
		_, err := r.NewJob(secondly, task, gocron.WithName("job"))
		require.NoError(t, err)
		r.Start()
		until(2500 * time.Millisecond)
		cancel()
		until(5500 * time.Millisecond)
		require.Equal(t, make([]error, 5), alive)
		_, err = r.NewJob(secondly, task, gocron.WithName("other"), gocron.WithContext(ctx))
		require.ErrorContains(t, err, "gocron.WithContext: the Scheduler passes the run by it: give values to WithContext of this package")
	})
}

// RunNow on a follower says that it does nothing.
func TestTrap12RunNowOnAFollower(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var jobs []gocron.Job
		var replicas []*replica
		for range 2 {
			r := c.replica(scheduler.WithElection("jobs"))
			jobs = append(jobs, r.add(t, gocron.CronJob("0 0 1 1 *", false), func() {}))
			r.Start()
			replicas = append(replicas, r)
		}
		until(5 * time.Second)
		for i, r := range replicas {
			err := jobs[i].RunNow()
			if r.Elector().IsLeader(t.Context()) == nil {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, elector.ErrNotLeader)
			require.EqualError(t, err, `scheduler: job "job" is skipped: not_leader: elector: not the leader`)
			require.ErrorIs(t, r.Jobs()[0].RunNow(), elector.ErrNotLeader)
		}
		until(6 * time.Second)
		require.Len(t, c.book.runs, 1)
	})
}

// A task is wrapped before gocron gets it, and finds its run by the job's context, also where
// several jobs have one function.
func TestTrap15TasksFindTheirRuns(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica()
		_, err := r.NewJob(secondly, gocron.NewTask(func() {}), gocron.WithName("job"))
		require.ErrorContains(t, err, "is made by gocron.NewTask, which cannot be told of its lease: use scheduler.NewTask")
		names := make(chan string, 10)
		task := scheduler.NewTask(func(ctx context.Context) {
			run, _ := scheduler.RunFromContext(ctx)
			names <- run.Job
		})
		for _, name := range []string{"a", "b", "c"} {
			_, err := r.NewJob(tenSecondly, task, gocron.WithName(name))
			require.NoError(t, err)
		}
		r.Start()
		until(15 * time.Second)
		close(names)
		var got []string
		for name := range names {
			got = append(got, name)
		}
		require.ElementsMatch(t, []string{"a", "b", "c"}, got)
	})
}
