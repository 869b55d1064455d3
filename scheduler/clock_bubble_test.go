package scheduler_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// Jobs sleep by the monotonic clock. When the wall clock parts from it, at once or bit by bit,
// every job thinks again, so that its next tick is run in time.
func TestStepOfTheClockWakesEveryJob(t *testing.T) {
	for name, test := range map[string]struct {
		behind, bit time.Duration
	}{"at once": {time.Hour, time.Hour}, "bit by bit": {900 * time.Millisecond, 30 * time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var clock settable
				clock.set(-test.behind)
				r := c.replica(quiet, scheduler.WithWall(clock.now))
				const jobs = 3
				for i := range jobs {
					r.add(t, gocron.CronJob("45 0 0 * * *", true), func() {}, gocron.WithName(fmt.Sprint("job ", i)))
				}
				r.Start()
				until(at(5).Add(time.Second / 2))
				for is := test.behind - test.bit; is >= 0; is -= test.bit {
					clock.set(-is)
					time.Sleep(time.Second)
				}
				until(at(50))
				require.Len(t, c.book.ticks(), jobs)
				for i := range jobs {
					_, began := c.book.run(i)
					require.WithinDuration(t, at(45), began, 100*time.Millisecond)
				}
			})
		})
	}
}

// A clock that is set back while a replica waits for the lease does not have it wait for the tick's
// time again, with the lease.
func TestClockSetBackDuringTheWaitForTheLease(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		var clock settable
		r := c.replica(scheduler.WithWall(clock.now), jobOptions(within(time.Minute, scheduler.CatchUpLatest)))
		r.add(t, tenSecondly, func() {})
		q := open(t, c.fleet.URLs(), redlock.WithClientOption(c.fleet.ClientOption), redlock.WithTTL(ttl))
		r.Start()
		until(at(5))
		lease, err := q.TryAcquire(t.Context(), jobKey)
		require.NoError(t, err)
		until(at(12))
		clock.set(-10 * time.Minute)
		require.NoError(t, lease.Release(t.Context()))
		until(at(15))
		require.Equal(t, []int{10}, c.book.seconds())
	})
}

// A clock that is set during a run has the run end at the next tick that it shows.
func TestOverlapCancelWithAClockThatIsSet(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		clock := &settable{}
		clock.set(-8 * time.Minute)
		r := c.replica(quiet, scheduler.WithWall(clock.now))
		var ended atomic.Pointer[time.Time]
		r.add(t, gocron.CronJob("*/10 * * * *", false), func(ctx context.Context) {
			<-ctx.Done()
			now := time.Now().UTC()
			ended.CompareAndSwap(nil, &now)
		}, scheduler.WithOverlap(scheduler.OverlapCancel))
		r.Start()
		until(day(1, 0, 19, 0)) // the clock shows 0:11
		require.Len(t, c.book.ticks(), 1)
		clock.set(0)
		until(day(1, 0, 21, 0))
		require.Equal(t, []string{"00:10", "00:20"}, c.book.texts("15:04"))
		require.WithinRange(t, *ended.Load(), day(1, 0, 20, 0), day(1, 0, 20, 1))
	})
}
