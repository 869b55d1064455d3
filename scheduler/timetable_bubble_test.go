package scheduler_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// onTheDay runs a test with five nodes from a time of the year 2000 on, which is when bubbles
// begin.
func onTheDay(t *testing.T, begin time.Time, test func(t *testing.T, c *cluster)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(begin))
		test(t, &cluster{t: t, fleet: redlocktest.StartPipes(t, 5), book: &book{}})
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

// Jobs say what they were asked for, whatever gocron was.
func TestJobsTellTheirSchedule(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica()
		r.Start()
		j := r.add(t, gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(10, 30, 0))), func() {})
		for _, j := range []gocron.Job{j, r.Jobs()[0]} {
			schedule, ok := j.Schedule().(gocron.DailyJobSchedule)
			require.True(t, ok, "%T", j.Schedule())
			require.EqualValues(t, 1, schedule.Interval)
			next, err := j.NextRuns(2)
			require.NoError(t, err)
			require.Equal(t, []time.Time{at(37800), at(37800 + 86400)}, next)
		}
	})
}

// A service that is started after the time of a one-time job starts all the same. NewJob failed,
// and so did the service, each time.
func TestOneTimeJobOfThePast(t *testing.T) {
	for _, test := range []struct {
		name    string
		catchUp []scheduler.Option
		want    []int
	}{
		{"lost", nil, nil},
		{"too late", []scheduler.Option{scheduler.WithCatchUp(10*time.Second, scheduler.CatchUpAll)}, nil},
		{"run late, once", []scheduler.Option{scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll)}, []int{5, 7}},
		{"the last, once", []scheduler.Option{scheduler.WithCatchUp(time.Minute, scheduler.CatchUpLatest)}, []int{7}},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				until(20 * time.Second)
				var jobs []gocron.Job
				start := func(opts ...gocron.JobOption) *replica {
					r := c.replica(test.catchUp...)
					jobs = append(jobs, r.add(t, gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(at(7), at(5))), func() {}, opts...))
					r.Start()
					return r
				}
				r := start()
				start()
				until(25 * time.Second)
				require.NoError(t, r.Shutdown())
				start()
				until(30 * time.Second)
				require.Equal(t, test.want, c.book.tickSeconds())
				next, err := jobs[2].NextRun()
				require.NoError(t, err)
				require.Zero(t, next)
				several, err := jobs[2].NextRuns(3)
				require.NoError(t, err)
				require.Empty(t, several)
				require.NoError(t, jobs[2].RunNow())
				synctest.Wait()
				require.Len(t, c.book.runs, len(test.want)+1)
			})
		})
	}
}
