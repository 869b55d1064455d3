package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// Ticks that come while a run goes on are skipped, also when missed ones are caught up, and whoever
// looks.
func TestOverlappedTicksAreNotMissed(t *testing.T) {
	for _, policy := range []scheduler.CatchUp{scheduler.CatchUpLatest, scheduler.CatchUpAll} {
		t.Run(policy.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				start := func() {
					r := c.replica(scheduler.WithCatchUp(time.Minute, policy))
					r.add(t, secondly, func() { time.Sleep(2500 * time.Millisecond) })
					r.Start()
				}
				start()
				start()
				until(8300 * time.Millisecond)
				start() // in the middle of a run
				until(30500 * time.Millisecond)
				require.Equal(t, []int{1, 4, 7, 10, 13, 16, 19, 22, 25, 28}, c.book.tickSeconds())
				require.Equal(t, 1, c.book.most)
				require.NotZero(t, c.book.reasons()[scheduler.SkipOverlap])
			})
		})
	}
}

// After a start in the middle of an interval, whose tick nobody has run and this replica would not,
// it is run at once.
func TestIntervalInProgressIsCaughtUp(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		start := func() *replica {
			r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll))
			r.add(t, gocron.DurationJob(4*time.Second), func() {})
			r.Start()
			return r
		}
		until(1 * time.Second)
		r := start() // ticks at 5, 9, 13, ...
		until(9500 * time.Millisecond)
		require.NoError(t, r.Shutdown())
		until(18500 * time.Millisecond)
		start() // ticks at 22.5, 26.5, ...
		until(18600 * time.Millisecond)
		require.Equal(t, []int{5, 9, 12, 16}, c.book.tickSeconds())
		until(27 * time.Second)
		require.Equal(t, []int{5, 9, 12, 16, 22, 26}, c.book.tickSeconds())
	})
}

// A tick whose run did not return is run again before those that follow.
func TestTickThatPanickedIsNotOvertaken(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		panics := 0
		for range 3 {
			r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll), scheduler.WithDelivery(redlock.AtLeastOnce))
			r.add(t, secondly, func(ctx context.Context) {
				if run, _ := scheduler.RunFromContext(ctx); run.Tick.Equal(at(3)) && panics < 2 {
					panics++
					panic("not yet")
				}
			}, gocron.WithEventListeners(gocron.AfterJobRunsWithPanic(func(uuid.UUID, string, any) {})))
			r.Start()
		}
		until(12500 * time.Millisecond)
		require.Equal(t, []int{1, 2, 3, 3, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, c.book.tickSeconds())
	})
}

// Ticks that are older than the window when a replica is back are not run.
func TestOldTicksAreNotCaughtUp(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		start := func() *replica {
			r := c.replica(scheduler.WithCatchUp(15*time.Second, scheduler.CatchUpAll))
			r.add(t, tenSecondly, func() {})
			r.Start()
			return r
		}
		r := start()
		until(15 * time.Second)
		require.NoError(t, r.Shutdown())
		until(58 * time.Second)
		start()
		until(65 * time.Second)
		require.Equal(t, []int{10, 50, 60}, c.book.tickSeconds())
	})
}

// A run that was told of the loss of its lease, and ended, is not complete.
func TestRunThatLostItsLeaseIsNotComplete(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll), scheduler.WithDelivery(redlock.AtLeastOnce))
		r.add(t, tenSecondly, func(ctx context.Context) {
			if run, _ := scheduler.RunFromContext(ctx); run.Attempt == 1 && run.Tick.Equal(at(10)) {
				c.freeze(0, 1, 2)
				<-ctx.Done()
				c.thaw(0, 1, 2)
			}
		})
		r.Start()
		until(25 * time.Second)
		require.Equal(t, []int{10, 10, 20}, c.book.tickSeconds())
	})
}

// Ticks that come during a RunNow are overlapped, on whatever replica, as those that come during a
// run of a tick.
func TestTicksDuringRunNowAreOverlapped(t *testing.T) {
	for _, test := range []struct {
		policy  scheduler.CatchUp
		overlap scheduler.Overlap
		late    []int
	}{
		{scheduler.CatchUpLatest, scheduler.OverlapSkip, nil},
		{scheduler.CatchUpAll, scheduler.OverlapSkip, nil},
		{scheduler.CatchUpAll, scheduler.OverlapQueue, []int{40}},
	} {
		t.Run(fmt.Sprint(test.policy, ", ", test.overlap), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var jobs []gocron.Job
				for range 2 {
					r := c.replica(scheduler.WithCatchUp(time.Hour, test.policy), scheduler.WithOverlap(test.overlap))
					jobs = append(jobs, r.add(t, tenSecondly, func(ctx context.Context) {
						if run, _ := scheduler.RunFromContext(ctx); run.Tick.IsZero() {
							nap(ctx, 35*time.Second)
						}
					}))
					r.Start()
				}
				until(12 * time.Second)
				require.NoError(t, jobs[0].RunNow()) // until 0:47
				until(65 * time.Second)
				var late []int
				for i := range c.book.runs {
					if run, _ := c.book.run(i); run.CatchUp {
						late = append(late, run.Tick.Second())
					}
				}
				require.Equal(t, test.late, late)
				require.Equal(t, []int{50, 60}, c.book.tickSeconds()[2+len(late):])
				require.NotZero(t, c.book.reasons()[scheduler.SkipOverlap])
			})
		})
	}
}

// A random job is run at its times, or not at all, whatever the policy for missed ticks.
func TestRandomTickIsNotRunLate(t *testing.T) {
	for _, policy := range []scheduler.CatchUp{scheduler.CatchUpNone, scheduler.CatchUpAll} {
		t.Run(policy.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.replica(scheduler.WithElection("jobs"), scheduler.WithCatchUp(time.Hour, policy))
				j := r.add(t, gocron.DurationRandomJob(20*time.Second, 21*time.Second), func() {})
				r.Start()
				for range 3 {
					next, err := j.NextRun()
					require.NoError(t, err)
					time.Sleep(time.Until(next) - 20*time.Millisecond)
					c.freeze(0, 1, 2)
					pass(1200 * time.Millisecond)
					c.thaw(0, 1, 2)
					pass(10 * time.Second)
				}
				require.Empty(t, c.book.tickSeconds())
				require.Equal(t, map[scheduler.Reason]int{scheduler.SkipTimeout: 3}, c.book.reasons())
			})
		})
	}
}
