//go:build long

package scheduler_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// Of more missed ticks than are caught up the last ones are run, once each, and people are told.
func TestMoreMissedTicksThanAreCaughtUp(t *testing.T) {
	for _, more := range []int{0, 50} {
		alone(t, func(t *testing.T, c *cluster) { missedTicks(t, c, scheduler.MaxCatchUp+more) })
	}
}

// Ticks before the start of a job were not missed.
func TestTicksBeforeTheStartAreNotMissed(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		begin := func(opts ...gocron.JobOption) *replica {
			r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll))
			r.add(t, tenSecondly, func() {}, opts...)
			r.Start()
			return r
		}
		first := begin()
		until(25 * time.Second)
		require.NoError(t, first.Shutdown())
		until(45 * time.Second)
		begin(gocron.WithStartAt(gocron.WithStartDateTime(at(70))))
		until(91 * time.Second)
		require.Equal(t, []int{10, 20, 70, 80, 90}, c.book.tickSeconds())
	})
}

// A late tick of an interval is paused by when it was due, and not by when its interval began.
func TestLateTickOfAnIntervalIsDueAtItsTime(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll))
		r.add(t, gocron.DurationJob(10*time.Second), func() {}, gocron.WithStartAt(gocron.WithStartDateTime(at(8))))
		r.Start()
		until(9 * time.Second)
		_, err := r.q.Pause(t.Context(), "job/job", redlock.PauseOptions{Until: at(25)})
		require.NoError(t, err)
		until(27 * time.Second)
		c.freeze(0, 1, 2)
		until(30 * time.Second)
		c.thaw(0, 1, 2)
		until(37 * time.Second)
		require.Equal(t, []int{8, 28}, c.book.tickSeconds(), "that of 0:28 is run, by its time")
	})
}

// A job that runs on every replica ends as gocron has it.
func TestUnlockedJobEnds(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll))
		runs := make(chan time.Time, 100)
		r.add(t, tenSecondly, func() { runs <- time.Now() },
			gocron.WithStopAt(gocron.WithStopDateTime(at(45))), gocron.WithDisabledDistributedJobLocker(true))
		r.Start()
		until(2 * time.Minute)
		require.Len(t, runs, 4)
	})
}

// The last ticks of a job that ends are caught up like others, by this replica and by one that
// begins to schedule after the end; and nothing is due from the end on, and nothing is skipped.
func TestLastTicksOfAJobThatEnds(t *testing.T) {
	for name, definition := range map[string]gocron.JobDefinition{"crontab": tenSecondly, "interval": gocron.DurationJob(10 * time.Second)} {
		for _, restart := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				inCluster(t, func(t *testing.T, c *cluster) {
					r := c.within(100, scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll))
					opts := []gocron.JobOption{gocron.WithStopAt(gocron.WithStopDateTime(at(45)))}
					if name == "interval" {
						opts = append(opts, gocron.WithStartAt(gocron.WithStartDateTime(at(10))))
					}
					refused := make(chan error, 100)
					opts = append(opts, gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
						var skip *scheduler.SkipError
						if !errors.As(err, &skip) || skip.Reason == scheduler.SkipStopped {
							refused <- err
						}
					})))
					j := r.add(t, definition, func() {}, opts...)
					r.Start()
					until(25 * time.Second)
					if restart {
						require.NoError(t, r.StopJobs())
						until(46 * time.Second)
						r.Start()
					} else {
						c.freeze(0, 1, 2)
						until(43 * time.Second)
						c.thaw(0, 1, 2)
					}
					until(50 * time.Second)
					require.Equal(t, []int{10, 20, 30, 40}, c.book.tickSeconds())
					next, err := j.NextRun()
					require.NoError(t, err)
					require.Zero(t, next)
					before := c.book.skipped()
					require.NoError(t, j.RunNow(), "it can be run by hand")
					until(5 * time.Minute)
					require.Len(t, c.book.tickSeconds(), 5)
					require.Equal(t, before, c.book.skipped(), "nothing is skipped that is no tick")
					require.Empty(t, refused, "nor is a listener told of any")
				})
			})
		}
	}
}
