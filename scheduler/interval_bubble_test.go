package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// Replicas that were started at different moments count a duration from different moments; one of
// them runs in each interval.
func TestTrap04DurationJobRunsOncePerInterval(t *testing.T) {
	for _, mode := range []struct {
		name string
		opts []scheduler.Option
	}{{"locker", nil}, {"leader", []scheduler.Option{scheduler.WithElection("jobs")}}} {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for _, phase := range []time.Duration{0, 2300 * time.Millisecond, 3100 * time.Millisecond} {
					time.Sleep(phase)
					r := c.replica(mode.opts...)
					r.add(t, gocron.DurationJob(10*time.Second), func() {})
					r.Start()
				}
				until(205 * time.Second)
				perInterval := make(map[int]int)
				for _, s := range c.book.tickSeconds() {
					perInterval[s/10]++
				}
				for i := 1; i < 20; i++ {
					require.Equal(t, 1, perInterval[i], "runs in interval %d: %v", i, c.book.tickSeconds())
				}
			})
		})
	}
}

// An attempt takes longer than the interval of the job, because no node answers. gocron passes over
// the ticks that come meanwhile, and each of them is told of.
func TestTicksThatComeDuringALongAttempt(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		const every = 30 * time.Millisecond // a node has 100 ms
		r := c.replica()
		r.add(t, gocron.DurationJob(every), func() {})
		r.Start()
		until(2 * time.Second)
		c.freeze(0, 1, 2, 3, 4)
		until(4 * time.Second)
		c.thaw(0, 1, 2, 3, 4)
		until(6 * time.Second)
		told := make(map[int64]bool)
		for _, tick := range c.book.ticks() {
			told[tick.UnixMilli()/every.Milliseconds()] = true
		}
		c.book.mu.Lock()
		defer c.book.mu.Unlock()
		for _, skip := range c.book.skips {
			told[skip.Tick.UnixMilli()/every.Milliseconds()] = true
		}
		for n := at(1).UnixMilli() / every.Milliseconds(); n < at(5).UnixMilli()/every.Milliseconds(); n++ {
			require.True(t, told[n], "tick %v", time.UnixMilli(n*every.Milliseconds()).UTC())
		}
	})
}

// Intervals that pass while jobs are stopped are caught up when they start again, and not only with
// the next tick.
func TestIntervalsMissedWhileJobsWereStopped(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll))
		r.add(t, gocron.DurationJob(10*time.Second), func() {}, gocron.WithStartAt(gocron.WithStartDateTime(at(12))))
		r.Start()
		until(25 * time.Second)
		require.NoError(t, r.StopJobs())
		until(46 * time.Second)
		r.Start()
		until(49 * time.Second)
		require.Equal(t, []int{12, 22, 32}, c.book.tickSeconds(), "the interval that goes on has its own tick")
		until(55 * time.Second)
		require.Equal(t, []int{12, 22, 32, 42, 52}, c.book.tickSeconds(), "those behind it are run late, by their times")
	})
}

// The attempts of a tick of an interval have the same tick: the time that was scheduled, also on
// another replica if the job has a start.
func TestAttemptsOfAnIntervalHaveOneTick(t *testing.T) {
	for _, other := range []bool{false, true} {
		t.Run(fmt.Sprint("on another replica: ", other), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				start := func() *replica {
					r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll), scheduler.WithDelivery(redlock.AtLeastOnce))
					r.add(t, gocron.DurationJob(10*time.Second), func(ctx context.Context) {
						if run, _ := scheduler.RunFromContext(ctx); run.Attempt == 1 {
							panic("cut short")
						}
					}, gocron.WithStartAt(gocron.WithStartDateTimePast(at(18))))
					r.Start()
					return r
				}
				r := start()
				until(28*time.Second + 500*time.Millisecond)
				if other {
					require.NoError(t, r.Shutdown())
					start()
				}
				until(35 * time.Second)
				first, _ := c.book.run(len(c.book.runs) - 2)
				second, _ := c.book.run(len(c.book.runs) - 1)
				require.Equal(t, []int{1, 2}, []int{first.Attempt, second.Attempt})
				require.True(t, first.Tick.Equal(at(28)) && second.Tick.Equal(at(28)), "attempt 1 is of %v, attempt 2 of %v", first.Tick, second.Tick)
			})
		})
	}
}

// A tick of an interval that is due after a pause is run late, although its interval began before
// the end of the pause. Without a start nobody knows when it was due.
func TestTickOfAnIntervalAfterAPauseIsRunLate(t *testing.T) {
	for _, test := range []struct {
		name string
		opts []gocron.JobOption
		want int
	}{
		{"due 2:40", []gocron.JobOption{gocron.WithStartAt(gocron.WithStartDateTimePast(at(-20)))}, 160},
		{"due 2:40 by the replica's start", nil, 120},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				start := func() *replica {
					r := c.replica(scheduler.WithCatchUp(time.Hour, scheduler.CatchUpAll))
					r.add(t, gocron.DurationJob(time.Minute), func() {}, test.opts...)
					r.Start()
					return r
				}
				until(40 * time.Second)
				r := start()
				until(130 * time.Second)
				_, err := r.q.Pause(t.Context(), "job/job", redlock.PauseOptions{})
				require.NoError(t, err)
				until(150 * time.Second)
				_, err = r.q.Resume(t.Context(), "job/job", redlock.PauseOptions{})
				require.NoError(t, err)
				until(155 * time.Second)
				require.NoError(t, r.Shutdown())
				until(165 * time.Second)
				start()
				until(175 * time.Second)
				require.Equal(t, test.want, c.book.tickSeconds()[len(c.book.runs)-1])
			})
		})
	}
}
