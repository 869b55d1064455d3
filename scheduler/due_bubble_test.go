package scheduler_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/pause"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// busy is a gocron.SchedulerMonitor that keeps gocron's loop busy while a job is unregistered.
type busy time.Duration

func (b busy) JobUnregistered(gocron.Job)                        { time.Sleep(time.Duration(b)) }
func (busy) SchedulerStarted()                                   {}
func (busy) SchedulerStopped()                                   {}
func (busy) SchedulerShutdown()                                  {}
func (busy) JobRegistered(gocron.Job)                            {}
func (busy) JobStarted(gocron.Job)                               {}
func (busy) JobRunning(gocron.Job)                               {}
func (busy) JobFailed(gocron.Job, error)                         {}
func (busy) JobCompleted(gocron.Job)                             {}
func (busy) JobExecutionTime(gocron.Job, time.Duration)          {}
func (busy) JobSchedulingDelay(gocron.Job, time.Time, time.Time) {}
func (busy) ConcurrencyLimitReached(string, gocron.Job)          {}

// A run that was asked for ahead of its time waits in gocron's Lock, so at its time it needs
// nothing of gocron's loop; and no listener hears of it before that.
func TestGocronIsAskedAheadOfTheDueTime(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		r := c.replica(quiet, scheduler.WithGocron(gocron.WithSchedulerMonitor(busy(400*time.Millisecond))))
		heard := make(chan time.Time, 10)
		other := r.add(t, minutely, func() {}, gocron.WithName("other"))
		r.add(t, tenSecondly, func() {}, gocron.WithEventListeners(gocron.BeforeJobRuns(func(uuid.UUID, string) { heard <- time.Now() })))
		r.Start()
		until(at(10).Add(-100 * time.Millisecond))
		require.Empty(t, heard)
		require.NoError(t, r.RemoveJob(other.ID()))
		until(at(12))
		require.Len(t, heard, 1)
		require.WithinDuration(t, at(10), <-heard, time.Millisecond, "gocron's loop was busy from before to after the due time")
		require.Equal(t, []int{10}, c.book.seconds())
	})
}

// A run that waits for its time and may not begin after all is given back. gocron hears of it once,
// and once more when the tick is left out for good.
func TestPauseWhileARunWaitsForItsTime(t *testing.T) {
	inCluster(t, func(t *testing.T, c *cluster) {
		const jobs = 600
		r := c.named("ann", quiet) // who asks 690 ms ahead
		for n := range jobs {
			r.add(t, never, func() {}, gocron.WithName(fmt.Sprint("job ", n)), gocron.WithDisabledDistributedJobLocker(true))
		}
		listener, skips := told()
		r.add(t, tenSecondly, func() {}, listener)
		r.Start()
		until(at(10).Add(-500 * time.Millisecond)) // it was asked for
		_, _, err := pause.Set(t.Context(), r.q, jobKey, pause.Pause{By: "ann"})
		require.NoError(t, err)
		until(at(12))
		require.Empty(t, c.book.ticks())
		var pending []bool
		for _, e := range skips() {
			require.Equal(t, scheduler.SkipPaused, e.Reason)
			require.True(t, e.Tick.Equal(at(10)))
			pending = append(pending, e.Pending)
		}
		require.Equal(t, []bool{true, false}, pending)
	})
}

// How runs ended is written when all have begun that are due with them, or will not, and not much
// later.
func TestRunsBeginBeforeOthersAreWrittenDown(t *testing.T) {
	blocks := func(d time.Duration) gocron.EventListener {
		return gocron.BeforeJobRuns(func(uuid.UUID, string) { time.Sleep(d) })
	}
	for name, test := range map[string]struct {
		other gocron.EventListener
		free  time.Duration
	}{
		"soon":  {blocks(150 * time.Millisecond), 150 * time.Millisecond},
		"late":  {blocks(5 * time.Second), 200 * time.Millisecond},
		"never": {gocron.BeforeJobRunsSkipIfBeforeFuncErrors(func(uuid.UUID, string) error { return errors.New("no") }), 0},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				r := c.replica(quiet)
				r.add(t, tenSecondly, func() {}, gocron.WithName("other"), gocron.WithEventListeners(test.other))
				r.add(t, tenSecondly, func() {})
				r.Start()
				due := at(10)
				until(due.Add(test.free - time.Millisecond))
				_, err := r.q.TryAcquire(t.Context(), jobKey)
				require.ErrorIs(t, err, redlock.ErrHeld)
				until(due.Add(test.free + time.Millisecond))
				require.Contains(t, c.book.seconds(), 10)
				lease, err := r.q.TryAcquire(t.Context(), jobKey)
				require.NoError(t, err)
				require.NoError(t, lease.Release(t.Context()))
			})
		})
	}
}
