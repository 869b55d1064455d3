package scheduler_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// every ten seconds, so that a failover takes less than an interval.
var tenSecondly = gocron.CronJob("*/10 * * * * *", true)

func (c *cluster) freeze(nodes ...int) {
	c.t.Helper()
	freeze(c.t, c.fleet, nodes...)
}

func (c *cluster) thaw(nodes ...int) {
	c.t.Helper()
	for _, i := range nodes {
		require.NoError(c.t, c.fleet.Node(i).Thaw())
	}
}

// until sleeps to a moment after the epoch of the bubble's clock, midnight UTC, of the first of
// January 2000, and until nothing is left to be done then.
func until(d time.Duration) {
	time.Sleep(time.Until(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(d)))
	synctest.Wait()
}

// pass lets time pass, and waits until nothing is left to be done then. A sleep alone does not:
// what others do at its end may come later, and what they have written is not safe to read.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func at(seconds int) time.Time {
	return time.Date(2000, 1, 1, 0, 0, seconds, 0, time.UTC)
}

func (b *book) tickSeconds() []int {
	var s []int
	for _, tick := range b.ticks() {
		s = append(s, int(tick.Sub(at(0))/time.Second))
	}
	return s
}

// Ticks for which no quorum could be reached.
func TestCatchUpAfterAnOutageOfTheNodes(t *testing.T) {
	for _, test := range []struct {
		name string
		opts []scheduler.Option
		want []int
	}{
		{"none", nil, []int{10, 20, 60, 70}},
		{"latest", []scheduler.Option{scheduler.WithCatchUp(time.Minute, scheduler.CatchUpLatest)}, []int{10, 20, 50, 60, 70}},
		{"all", []scheduler.Option{scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll)}, []int{10, 20, 30, 40, 50, 60, 70}},
		{"all, window passed", []scheduler.Option{scheduler.WithCatchUp(12*time.Second, scheduler.CatchUpAll)}, []int{10, 20, 50, 60, 70}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				for range 2 {
					r := c.replica(test.opts...)
					r.add(t, tenSecondly, func() { time.Sleep(100 * time.Millisecond) })
					r.Start()
				}
				until(25 * time.Second)
				c.freeze(0, 1, 2)
				until(55 * time.Second)
				c.thaw(0, 1, 2)
				until(75 * time.Second)
				require.Equal(t, test.want, c.book.tickSeconds())
				require.Equal(t, 1, c.book.most)
			})
		})
	}
}

// Ticks in the time in which no replica was up.
func TestCatchUpAfterAllReplicasWereDown(t *testing.T) {
	for _, test := range []struct {
		name string
		opts []scheduler.Option
		want []int
	}{
		{"none", nil, []int{10, 20, 60}},
		{"latest", []scheduler.Option{scheduler.WithCatchUp(time.Minute, scheduler.CatchUpLatest)}, []int{10, 20, 50, 60}},
		{"all", []scheduler.Option{scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll)}, []int{10, 20, 30, 40, 50, 60}},
		{"all, on the leader", []scheduler.Option{scheduler.WithElection("jobs"), scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll)}, []int{10, 20, 30, 40, 50, 60}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				task := func() { time.Sleep(time.Second) }
				first := c.replica(test.opts...)
				first.add(t, tenSecondly, task)
				first.Start()
				until(25 * time.Second)
				require.NoError(t, first.Shutdown())
				until(55 * time.Second)
				for range 2 {
					r := c.replica(test.opts...)
					r.add(t, tenSecondly, task)
					r.Start()
				}
				until(65 * time.Second)
				require.Equal(t, test.want, c.book.tickSeconds())
				require.Equal(t, 1, c.book.most)
			})
		})
	}
}

// A failover of the leader.
func TestTrap14TicksOfAFailoverAreCaughtUp(t *testing.T) {
	for _, test := range []struct {
		name string
		opts []scheduler.JobOption
		want []int
	}{
		{"none", nil, []int{1, 2, 3, 8, 9}}, // of 6 and 7, which are younger than the grace, the later is run
		{"latest", []scheduler.JobOption{scheduler.WithCatchUp(time.Minute, scheduler.CatchUpLatest)}, []int{1, 2, 3, 7, 8, 9}},
		{"all", []scheduler.JobOption{scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll)}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				var replicas []*replica
				for range 3 {
					r := c.replica(scheduler.WithElection("jobs"))
					_, err := r.With(test.opts...).NewJob(secondly, scheduler.NewTask(func() {}), gocron.WithName("job"))
					require.NoError(t, err)
					r.Start()
					replicas = append(replicas, r)
				}
				until(3500 * time.Millisecond)
				for _, r := range replicas {
					if r.Elector().IsLeader(t.Context()) == nil {
						require.NoError(t, r.q.Close())
						break
					}
				}
				// An attempt that the dead leader left on some nodes is in the way for two seconds.
				until(12500 * time.Millisecond)
				got, want := c.book.tickSeconds(), test.want
				got = slices.DeleteFunc(got, func(tick int) bool { return tick > 9 })
				require.Equal(t, 1, c.book.most)
				elected := c.book.begun[3].Second()
				switch {
				case elected == 4: // the leader's release was sent before its Quorum had closed
					want = []int{1, 2, 3, 4, 5, 6, 7, 8, 9}
				case test.name == "latest" && elected == 6:
					want = []int{1, 2, 3, 6, 7, 8, 9}
				default:
					require.Contains(t, []int{6, 7}, elected, "a TTL after the last extension")
				}
				require.Subset(t, got, want)
				if len(test.opts) > 0 {
					require.Equal(t, want, got)
				}
			})
		})
	}
}
