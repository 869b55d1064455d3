//go:build long

package scheduler_test

import (
	"context"
	"slices"
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

// A run that is cut short is run again only at least once, by whoever is there, as soon as its
// lease has run out.
func TestCatchUpAfterACrashInTheMiddleOfARun(t *testing.T) {
	for _, mode := range []struct {
		name string
		opts []scheduler.Option
	}{{"locker", nil}, {"leader", []scheduler.Option{scheduler.WithElection("jobs")}}} {
		for _, test := range []struct {
			delivery redlock.Delivery
			want     []int
		}{
			{redlock.AtMostOnce, []int{10, 20, 30}},
			{redlock.AtLeastOnce, []int{10, 20, 20, 30}},
		} {
			t.Run(mode.name+", "+test.delivery.String(), func(t *testing.T) {
				inCluster(t, func(t *testing.T, c *cluster) {
					opts := append(mode.opts, scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll), scheduler.WithDelivery(test.delivery))
					var mu sync.Mutex // ticks go on while the test looks
					var attempts []int
					var victim *replica
					for range 3 {
						r := c.replica(opts...)
						r.add(t, tenSecondly, func(ctx context.Context) {
							run, _ := scheduler.RunFromContext(ctx)
							mu.Lock()
							attempts = append(attempts, run.Attempt)
							dies := run.Tick.Equal(at(20)) && run.Attempt == 1
							if dies {
								victim = r
							}
							mu.Unlock()
							if dies {
								<-ctx.Done()
								time.Sleep(time.Minute) // dead
							}
						})
						r.Start()
					}
					until(20*time.Second + 500*time.Millisecond)
					mu.Lock()
					dead := victim
					mu.Unlock()
					require.NotNil(t, dead)
					require.NoError(t, dead.q.Close()) // its leases are not extended any more
					until(35 * time.Second)
					require.Equal(t, test.want, c.book.tickSeconds())
					mu.Lock()
					made := slices.Clone(attempts)
					mu.Unlock()
					if test.delivery == redlock.AtLeastOnce {
						require.Equal(t, []int{1, 1, 2, 1}, made)
						again, began := c.book.run(2)
						require.True(t, again.CatchUp)
						require.Less(t, began.Sub(at(20)), 2*ttl)
					}
					until(2 * time.Minute)
				})
			})
		}
	}
}

// A rolling restart of three replicas loses no tick and runs none twice.
func TestRollingRestart(t *testing.T) {
	for _, mode := range []struct {
		name string
		opts []scheduler.Option
	}{{"locker", nil}, {"leader", []scheduler.Option{scheduler.WithElection("jobs")}}} {
		t.Run(mode.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				start := func(i int) *replica {
					r := c.replica(append(mode.opts, ahead(time.Duration(i-1)*300*time.Millisecond))...)
					r.add(t, secondly, func() { time.Sleep(300 * time.Millisecond) })
					r.Start()
					return r
				}
				var replicas []*replica
				for i := range 3 {
					replicas = append(replicas, start(i))
				}
				for round := range 4 {
					for i := range replicas {
						// at another moment of the second each time, also right at a tick, and in
						// the middle of a run
						time.Sleep(2*time.Second + time.Duration(37*(3*round+i))*time.Millisecond)
						require.NoError(t, replicas[i].Shutdown())
						replicas[i] = start(i)
					}
				}
				time.Sleep(2 * time.Second)
				got := c.book.tickSeconds()
				for i := range got {
					require.Equal(t, got[0]+i, got[i], "ticks %v", got)
				}
				require.GreaterOrEqual(t, len(got), 27)
				require.Equal(t, 1, c.book.most)
			})
		})
	}
}
