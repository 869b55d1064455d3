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
