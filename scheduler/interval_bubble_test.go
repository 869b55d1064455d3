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
