//go:build long

package scheduler_test

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// The tick is the one that is due, however many gocron has passed over before it: it keeps them in
// a list.
func TestTickAfterManyThatWerePassedOver(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(scheduler.WithGocron(gocron.WithLimitConcurrentJobs(1, gocron.LimitModeReschedule)))
		_, err := r.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(4).Add(time.Second/2))), scheduler.NewTask(func() { time.Sleep(95 * time.Second) }), gocron.WithName("other"))
		require.NoError(t, err)
		r.add(t, secondly, func() {})
		r.Start()
		until(103500 * time.Millisecond)
		require.Equal(t, []int{1, 2, 3, 4, 4, 100, 101, 102, 103}, c.book.tickSeconds(), "4 is also the other's")
		require.Equal(t, 95, c.book.reasons()[scheduler.SkipSuperseded], "5 to 99, which are told of")
	})
}

func TestCronImplementation(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		for range 2 {
			r := c.replica(scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll))
			r.add(t, gocron.CronJob("whatever", false), func() {}, gocron.WithCronImplementation(everyFifth{}))
			r.Start()
		}
		until(18 * time.Second)
		c.freeze(0, 1, 2)
		until(38 * time.Second)
		c.thaw(0, 1, 2)
		until(50 * time.Second)
		require.Equal(t, []int{5, 15, 25, 35, 45}, c.book.tickSeconds())
	})
}
