//go:build long

package scheduler_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// Shutdown gives up the leadership, tells the run to end, and waits for it while its lease is
// extended.
func TestShutdownInOrder(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(scheduler.WithElection("jobs"))
		var states []error
		r.add(t, secondly, func(ctx context.Context) {
			<-ctx.Done()
			run, _ := scheduler.RunFromContext(ctx)
			time.Sleep(2 * ttl) // longer than the lease would last
			states = append(states, run.Lease().Err(), r.Elector().IsLeader(context.Background()))
		})
		r.Start()
		until(1500 * time.Millisecond)
		began := time.Now()
		require.NoError(t, r.Shutdown())
		require.Equal(t, 2*ttl, time.Since(began).Round(time.Second))
		require.Equal(t, []error{nil, elector.ErrNotLeader}, states, "the lease is kept until the run is over, and the leadership is not")
		synctest.Wait()
		for i := range 5 {
			for _, key := range []string{"tenure:{job/job}", "tenure:{election/jobs}"} {
				_, there := c.fleet.Node(i).Get(key)
				require.False(t, there, key)
			}
		}
	})
}

// A run that outlives the stop timeout keeps its lease; nobody else begins another.
func TestTrap11ShutdownThatTimesOut(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(scheduler.WithStopTimeout(3 * time.Second))
		r.add(t, secondly, func() { time.Sleep(19700 * time.Millisecond) })
		r.Start()
		until(1500 * time.Millisecond)
		require.ErrorIs(t, r.Shutdown(), gocron.ErrStopJobsTimedOut)
		other := c.replica()
		other.add(t, secondly, func() {})
		other.Start()
		until(20600 * time.Millisecond)
		require.Equal(t, []int{1}, c.book.tickSeconds())
		require.NotZero(t, c.book.reasons()[scheduler.SkipOverlap])
		until(23500 * time.Millisecond)
		require.Equal(t, []int{1, 21, 22, 23}, c.book.tickSeconds())
	})
}

// A run hears when its lease is lost, with the cause, and so when its leadership is.
func TestRunHearsOfALoss(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica()
		cause := make(chan error, 1)
		r.add(t, secondly, func(ctx context.Context) {
			c.freeze(0, 1, 2)
			<-ctx.Done()
			cause <- context.Cause(ctx)
		})
		r.Start()
		began := time.Now()
		err := <-cause
		var lost *redlock.LostError
		require.ErrorAs(t, err, &lost)
		require.Equal(t, redlock.LostDeadline, lost.Reason)
		require.LessOrEqual(t, time.Since(began), time.Second+ttl)
		c.thaw(0, 1, 2)
		require.NoError(t, r.Shutdown())
	})
	t.Run("of the leadership", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			r := c.replica(scheduler.WithElection("jobs"))
			cause := make(chan error, 1)
			r.add(t, secondly, func(ctx context.Context) {
				select {
				case <-ctx.Done():
					cause <- context.Cause(ctx)
				case <-time.After(5 * time.Second):
				}
			})
			r.Start()
			until(1500 * time.Millisecond)
			for i := range 5 {
				set(t, c.fleet.Node(i), "tenure:{election/jobs}", "somebody else")
			}
			require.ErrorIs(t, <-cause, redlock.ErrLost)
		})
	})
}
