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

// A one-time job has no further tick that could find the one that gocron dropped. It is told of,
// and run late if that is wanted.
func TestOneTimeJobWithoutAPlace(t *testing.T) {
	for _, test := range []struct {
		catchUp scheduler.CatchUp
		want    []int
	}{{scheduler.CatchUpNone, nil}, {scheduler.CatchUpLatest, []int{20}}, {scheduler.CatchUpAll, []int{20}}} {
		t.Run(test.catchUp.String(), func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				log, monitor := new(journal), &limits{}
				r := c.replica(scheduler.WithGocron(gocron.WithLimitConcurrentJobs(1, gocron.LimitModeReschedule), gocron.WithSchedulerMonitor(monitor)),
					scheduler.WithCatchUp(time.Hour, test.catchUp), scheduler.WithLogger(log.logger()))
				_, err := r.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(15))), scheduler.NewTask(func() { time.Sleep(10 * time.Second) }), gocron.WithName("other"))
				require.NoError(t, err)
				r.add(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(20))), func() {})
				r.Start()
				until(22 * time.Second)
				require.Len(t, c.book.skips, 1)
				skip := c.book.skips[0]
				require.Equal(t, scheduler.SkipOther, skip.Reason)
				require.Equal(t, test.want != nil, skip.Pending)
				require.True(t, skip.Tick.Equal(at(20)))
				require.ErrorContains(t, skip, "gocron has as many runs as it may")
				require.Len(t, log.lines("level=WARN"), 1)
				require.NotZero(t, monitor.reached.Load(), "the user's monitor is told, too")
				until(5 * time.Minute)
				require.Equal(t, append([]int{15}, test.want...), c.book.tickSeconds())
			})
		})
	}
}
