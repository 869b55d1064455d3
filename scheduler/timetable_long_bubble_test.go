//go:build long

package scheduler_test

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// A job of every hour is run in both of the hours that the clock shows alike, by whichever replica,
// and says so in its own zone.
func TestHourlyJobWhileTheClockIsSetBack(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	midnight := time.Date(2000, 10, 29, 0, 0, 0, 0, berlin)
	onTheDay(t, midnight, func(t *testing.T, c *cluster) {
		var jobs []gocron.Job
		for range 2 {
			r := c.replica(scheduler.WithLocation(berlin))
			jobs = append(jobs, r.add(t, gocron.CronJob("0 * * * *", false), func() {}))
			r.Start()
			time.Sleep(20 * time.Minute)
		}
		next, err := jobs[0].NextRuns(5)
		require.NoError(t, err)
		for i, at := range next {
			require.True(t, at.Equal(midnight.Add(time.Duration(i+1)*time.Hour)), "%v", at)
			require.Equal(t, berlin, at.Location())
		}
		time.Sleep(5 * time.Hour)
		ticks := c.book.ticks()
		require.Len(t, ticks, 5)
		for i, tick := range ticks {
			require.Equal(t, next[i].String(), tick.String())
		}
	})
}

// Clocks are set forward: a replica that starts that night runs what is to be run later.
func TestReplicaThatStartsBeforeTheClockIsSetForward(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	midnight := time.Date(2000, 3, 26, 0, 0, 0, 0, berlin)
	onTheDay(t, midnight, func(t *testing.T, c *cluster) {
		r := c.replica(scheduler.WithLocation(berlin))
		j := r.add(t, gocron.CronJob("30 2 * * *", false), func() {}, gocron.WithDaylightSavingsTimePolicy(gocron.DaylightSavingsTimeRunAfterTransition))
		r.Start()
		next, err := j.NextRun()
		require.NoError(t, err)
		require.Equal(t, "2000-03-26 03:30:00 +0200 CEST", next.String())
		pass(12 * time.Hour)
		require.Len(t, c.book.runs, 1)
		require.Equal(t, "2000-03-26 03:30:00 +0200 CEST", c.book.runs[0].Tick.String())
	})
}

// Clocks are set back: a replica that starts between the two times at which the clock shows 02:30
// does not run the job a second time.
func TestReplicaThatStartsWhileTheClockIsSetBack(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	midnight := time.Date(2000, 10, 29, 0, 0, 0, 0, berlin)
	onTheDay(t, midnight, func(t *testing.T, c *cluster) {
		start := func() {
			r := c.replica(scheduler.WithLocation(berlin))
			r.add(t, gocron.CronJob("30 2 * * *", false), func() {})
			r.Start()
		}
		start()
		time.Sleep(2*time.Hour + 45*time.Minute)
		start()
		pass(3 * time.Hour)
		require.Len(t, c.book.runs, 1)
		require.True(t, c.book.runs[0].Tick.Equal(midnight.Add(2*time.Hour+30*time.Minute)), "%v", c.book.runs[0].Tick)
	})
}
