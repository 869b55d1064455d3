package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// RunNow at once after Start is not refused because of leases under which nothing is run: each
// replica adopts the definitions of all jobs meanwhile.
func TestRunNowAtOnceAfterStart(t *testing.T) {
	for _, delay := range []time.Duration{0, 5 * time.Millisecond, 40 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for _, n := range c.fleet.Nodes() {
					n.SetDelay(delay)
				}
				var jobs [3]gocron.Job
				var shared []gocron.Job
				for i := range jobs {
					r := c.replica(quiet)
					for n := range jobs {
						j := r.add(t, never, func() {}, gocron.WithName(fmt.Sprint("job ", n)))
						if n == i {
							jobs[i] = j
						}
					}
					shared = append(shared, r.add(t, never, func(ctx context.Context) { nap(ctx, time.Minute) }))
				}
				var began atomic.Int64
				var all sync.WaitGroup
				for i, r := range c.replicas {
					r.Start()
					all.Go(func() { require.NoError(t, jobs[i].RunNow()) })
					all.Go(func() {
						skip := new(scheduler.SkipError)
						if err := shared[i].RunNow(); err == nil {
							began.Add(1)
						} else if !errors.As(err, &skip) || skip.Reason != scheduler.SkipOverlap {
							t.Error(err)
						}
					})
				}
				all.Wait()
				require.EqualValues(t, 1, began.Load(), "of the job that all of them run")
				synctest.Wait()
				require.Len(t, c.book.ticks(), 4)
			})
		})
	}
}

// A tick that is asked for ahead in a pause is not left out if the pause ends before its time.
func TestResumeBeforeThePausedTick(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet)
		r.add(t, tenSecondly, func() {})
		r.Start()
		until(at(5))
		_, _, err := pause.Set(t.Context(), r.q, jobKey, pause.Pause{By: "ann"})
		require.NoError(t, err)
		until(at(20).Add(-100 * time.Millisecond)) // it was asked for
		_, _, err = pause.Resume(t.Context(), r.q, jobKey, "ann", "")
		require.NoError(t, err)
		until(at(25))
		require.Equal(t, []int{20}, c.book.seconds())
		require.Equal(t, map[scheduler.Reason]int{scheduler.SkipPaused: 1}, c.book.reasons())
	})
}

// The wait of a tick for the lease ends with its window, and is not begun again in that instant.
func TestWaitEndsWithTheWindow(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var asked atomic.Int64
		r := c.replica(quiet, scheduler.WithTracer(&scheduler.Tracer{Skip: c.book.skip, Tick: func(ctx context.Context, _ scheduler.TickTrace) context.Context {
			if asked.Add(1) > 20 {
				time.Sleep(time.Second) // it would be asked for in this instant for ever
			}
			return ctx
		}}), jobOptions(within(8*time.Second, scheduler.CatchUpLatest), scheduler.WithDelivery(scheduler.AtLeastOnce)))
		r.add(t, minutely, func() {})
		r.Start()
		until(at(50))
		_, err := r.q.TryAcquire(t.Context(), jobKey, redlock.WithPayload("tick 1"))
		require.NoError(t, err)
		until(at(75))
		require.LessOrEqual(t, asked.Load(), int64(3))
		require.Empty(t, c.book.ticks())
	})
}

// How a run ended is written by the nodes' time: an interval from completion counts from its end,
// although its replica's clock was set ahead meanwhile.
func TestIntervalFromTheEndByTheNodesTime(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var clock settable
		task := func() { time.Sleep(10 * time.Second) }
		first := c.replica(quiet, scheduler.WithWall(clock.now))
		every := gocron.DurationJob(20 * time.Second)
		first.add(t, every, task, gocron.WithIntervalFromCompletion())
		first.Start()
		until(at(22))
		require.Len(t, c.book.ticks(), 1)
		clock.set(10 * time.Minute)
		second := c.replica(quiet)
		second.add(t, every, task, gocron.WithIntervalFromCompletion())
		second.Start()
		until(at(55))
		require.Len(t, c.book.ticks(), 2)
		_, began := c.book.run(0)
		run, _ := c.book.run(1)
		require.WithinDuration(t, began.Add(30*time.Second), run.Due, time.Second)
	})
}

// Ticks that a run has overlapped are told as such, also if its replica's clock was set back
// meanwhile.
func TestOverlapWithAClockThatWasSetBack(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var clock settable
		task := func(ctx context.Context) { nap(ctx, 25*time.Second) }
		first := c.replica(quiet, scheduler.WithWall(clock.now))
		first.add(t, tenSecondly, task)
		first.Start()
		until(at(15))
		require.Equal(t, []int{10}, c.book.seconds())
		clock.set(-20 * time.Second)
		second := c.replica(quiet)
		second.add(t, tenSecondly, task)
		second.Start()
		until(at(45))
		require.Equal(t, []int{10, 40}, c.book.seconds())
		told := 0
		for _, skip := range c.book.skips {
			if skip.Pending || skip.Reason == scheduler.SkipDone || skip.Reason == scheduler.SkipHeld {
				continue
			}
			require.Equal(t, scheduler.SkipOverlap, skip.Reason)
			told += skip.Count
		}
		require.Equal(t, 2, told)
	})
}

// Ticks that are left out for a run are told once, also if its task is not called and it comes
// again.
func TestRunThatIsGivenBackAgainAndAgain(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		late := within(time.Hour, scheduler.CatchUpLatest)
		r := c.replica(quiet)
		r.add(t, minutely, func(ctx context.Context) { nap(ctx, time.Hour) }, late)
		r.Start()
		until(day(1, 0, 1, 30))
		c.kill(r)
		until(day(1, 0, 4, 30))
		refuse := gocron.BeforeJobRunsSkipIfBeforeFuncErrors(func(uuid.UUID, string) error { return errors.New("not here") })
		r = c.replica(quiet)
		r.add(t, minutely, func() {}, late, gocron.WithEventListeners(refuse))
		r.Start()
		until(day(1, 0, 4, 50))
		require.Equal(t, map[scheduler.Reason]int{scheduler.SkipCutShort: 1, scheduler.SkipSuperseded: 1}, c.book.reasons())
	})
}
