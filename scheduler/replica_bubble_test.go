package scheduler_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// Three replicas whose clocks are up to two seconds apart, a job that takes no time, thirty
// ticks: thirty runs.
func TestTrap03InstantJobRunsOncePerTick(t *testing.T) {
	for _, test := range []struct {
		name string
		opts []scheduler.Option
	}{
		{"each run on whoever gets it", nil},
		{"on the leader", []scheduler.Option{scheduler.WithElection("jobs")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var replicas []*replica
				for _, d := range []time.Duration{-900 * time.Millisecond, 0, 800 * time.Millisecond} {
					r := c.replica(append(slices.Clone(test.opts), ahead(d))...)
					r.add(t, secondly, func() {})
					replicas = append(replicas, r)
				}
				for _, r := range replicas {
					r.Start()
				}
				time.Sleep(32 * time.Second)
				synctest.Wait()
				got := c.book.ticks()
				require.GreaterOrEqual(t, len(got), 30)
				for i, tick := range got {
					require.True(t, tick.Equal(got[0].Add(time.Duration(i)*time.Second)), "run %d is of %v", i, tick)
				}
				require.Equal(t, 1, c.book.most)
			})
		})
	}
}

type valueKey struct{}

// A run that takes longer than the interval is overlapped by no other, on any replica.
func TestTrap08RunsDoNotOverlap(t *testing.T) {
	for _, test := range []struct {
		overlap scheduler.Overlap
		runs    int
	}{
		{scheduler.OverlapSkip, 10},  // at 0, 3, 6, ... of 30 s
		{scheduler.OverlapQueue, 12}, // one after the other
	} {
		t.Run(test.overlap.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for range 3 {
					r := c.replica(jobOptions(scheduler.WithOverlap(test.overlap)))
					r.add(t, secondly, func() { time.Sleep(2500 * time.Millisecond) })
					r.Start()
				}
				time.Sleep(30*time.Second + 100*time.Millisecond)
				synctest.Wait()
				require.Equal(t, 1, c.book.most)
				require.InDelta(t, test.runs, len(c.book.runs), 1)
				require.True(t, slices.IsSortedFunc(c.book.ticks(), time.Time.Compare))
				require.NotZero(t, c.book.reasons()[scheduler.SkipOverlap])
			})
		})
	}
}
