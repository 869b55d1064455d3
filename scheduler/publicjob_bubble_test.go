package scheduler_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// never is a job that only RunNow runs.
var never = gocron.CronJob("0 0 1 1 *", false)

// refusedRun requires that RunNow says why there is no run.
func refusedRun(t *testing.T, j gocron.Job, want scheduler.Reason, by string) *scheduler.SkipError {
	t.Helper()
	var skip *scheduler.SkipError
	require.ErrorAs(t, j.RunNow(), &skip)
	require.Equal(t, want, skip.Reason, skip.Error())
	require.Equal(t, by, skip.By)
	require.Equal(t, "job", skip.Job)
	require.True(t, skip.Tick.IsZero())
	return skip
}

// RunNow says that there is no run because one goes on. It returned nil, and the reason it logged
// was that the job held its own lease.
func TestRunNowDuringARunSaysSo(t *testing.T) {
	for _, test := range []struct {
		name string
		job  gocron.JobDefinition
		from time.Duration
	}{
		{"a run that was asked for", never, 5 * time.Second},
		{"a tick", tenSecondly, 12 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				a, b := c.named("a", ahead(100*time.Millisecond)), c.named("b")
				listen, errs := told()
				task := func() { time.Sleep(5 * time.Second) }
				ja, jb := a.add(t, test.job, task, listen), b.add(t, test.job, task)
				a.Start()
				b.Start()
				until(test.from)
				if test.job == never {
					require.NoError(t, ja.RunNow())
				}
				refusedRun(t, ja, scheduler.SkipOverlap, "a")
				refusedRun(t, jb, scheduler.SkipOverlap, "a")
				until(test.from + 6*time.Second)
				require.Len(t, c.book.runs, 1)
				require.NoError(t, jb.RunNow())
				synctest.Wait()
				require.Len(t, c.book.runs, 2, "begun when RunNow returns")
				require.True(t, c.book.runs[1].Tick.IsZero())
				require.NoError(t, a.Shutdown())
				require.Empty(t, *errs, "listeners are told of ticks")
			})
		})
	}
}

// RunNow is bounded by the try timeout, and says what is missing.
func TestRunNowWithoutAQuorum(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a", scheduler.WithTryTimeout(300*time.Millisecond))
		j := r.add(t, never, func() {})
		r.Start()
		until(2 * time.Second)
		c.freeze(0, 1, 2)
		began := time.Now()
		require.ErrorIs(t, refusedRun(t, j, scheduler.SkipTimeout, ""), redlock.ErrTimeout)
		require.LessOrEqual(t, time.Since(began), 300*time.Millisecond)
		c.thaw(0, 1, 2)
		until(30 * time.Second)
		require.Empty(t, c.book.runs)
		require.Empty(t, c.book.skips)
	})
}

// A run that gocron has no place for is given back at once: it does not come later, and does not
// keep other replicas from the job.
func TestRunNowWithoutAPlace(t *testing.T) {
	for _, mode := range []gocron.LimitMode{gocron.LimitModeReschedule, gocron.LimitModeWait} {
		t.Run(map[gocron.LimitMode]string{gocron.LimitModeReschedule: "reschedule", gocron.LimitModeWait: "wait"}[mode], func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				a, b := c.named("a", scheduler.WithGocron(gocron.WithLimitConcurrentJobs(1, mode))), c.named("b")
				_, err := a.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(at(5))), scheduler.NewTask(func() { time.Sleep(20 * time.Second) }), gocron.WithName("other"))
				require.NoError(t, err)
				ja, jb := a.add(t, tenSecondly, func() {}), b.add(t, never, func() {})
				a.Start()
				b.Start()
				until(6 * time.Second)
				skip := refusedRun(t, ja, scheduler.SkipOther, "")
				require.ErrorIs(t, skip, gocron.ErrJobRunNowFailed)
				require.EqualError(t, skip, `scheduler: job "job" is skipped: other: gocron did not begin the run within 1s: it has as many as it may `+
					`(gocron.WithLimitConcurrentJobs), or is being stopped: gocron: Job: RunNow: scheduler unreachable`)
				require.NoError(t, jb.RunNow())
				until(45 * time.Second)
				var ticks []int
				asked := 0
				for _, run := range c.book.runs {
					switch {
					case run.Job == "job" && run.Tick.IsZero():
						asked++
					case run.Job == "job":
						ticks = append(ticks, int(run.Tick.Sub(at(0))/time.Second))
					}
				}
				require.Equal(t, 1, asked, "that of b")
				require.Equal(t, []int{30, 40}, ticks[len(ticks)-2:])
			})
		})
	}
}

// A Scheduler that stops does not begin a run any more, and does not wait for one that RunNow asks
// for.
func TestRunNowWhileStopping(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.named("a", scheduler.WithTryTimeout(5*time.Second))
		j := r.add(t, never, func() {})
		r.Start()
		until(2 * time.Second)
		c.freeze(0, 1, 2)
		answer := make(chan error, 1)
		go func() { answer <- j.RunNow() }()
		synctest.Wait()
		began := time.Now()
		require.NoError(t, r.StopJobs())
		require.Zero(t, time.Since(began))
		var skip *scheduler.SkipError
		require.ErrorAs(t, <-answer, &skip)
		require.Equal(t, scheduler.SkipStopped, skip.Reason)
		require.ErrorIs(t, skip, context.Canceled)
		c.thaw(0, 1, 2)
	})
}

// The error of AfterLockError tells what needs attention from what is as it should be.
func TestSkipErrorIsExpected(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		a, b := c.named("a", ahead(100*time.Millisecond)), c.named("b")
		var expected, alarming []scheduler.Reason
		a.add(t, tenSecondly, func() { time.Sleep(500 * time.Millisecond) })
		b.add(t, tenSecondly, func() {}, gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
			var skip *scheduler.SkipError
			require.ErrorAs(t, err, &skip)
			if skip.Expected() {
				expected = append(expected, skip.Reason)
				return
			}
			alarming = append(alarming, skip.Reason)
		})))
		a.Start()
		b.Start()
		until(25 * time.Second)
		c.freeze(0, 1, 2)
		until(35 * time.Second)
		require.Equal(t, []scheduler.Reason{scheduler.SkipHeld, scheduler.SkipHeld}, expected)
		require.Equal(t, []scheduler.Reason{scheduler.SkipTimeout}, alarming)
		c.thaw(0, 1, 2)
	})
}
