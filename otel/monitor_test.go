package tenureotel_test

import (
	"io/fs"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// count adds up a counter's points.
func (tel *telemetry) count(t *testing.T, name string, with ...string) int {
	t.Helper()
	sum := 0.0
	for _, p := range tel.matching(t, name, with...) {
		sum += p.value
	}
	return int(sum)
}

func TestBareSchedulerIsMeasured(t *testing.T) {
	three(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet)
		s := newGocron(t, q, tel.SchedulerOptions()...)
		runs := 0
		var succeeded time.Time
		task := func() error {
			time.Sleep(2 * time.Second)
			switch runs++; runs {
			case 1:
				succeeded = time.Now()
			case 2:
				return (*fs.PathError)(nil) // whose methods panic
			case 3:
				panic("panicked")
			}
			return nil
		}
		_, err := s.NewJob(everyTen, gocron.NewTask(task), gocron.WithName("bare"), survivesPanics)
		require.NoError(t, err)
		s.Start()
		pass(time.Second)
		require.Empty(t, tel.points(t, "tenure.job.success_timestamp"), "there has been none")
		pass(34 * time.Second)
		holder := acquire(t, q, "job/bare")
		pass(10 * time.Second)
		require.NoError(t, holder.Release(t.Context()))
		for _, outcome := range []string{"success", "error", "panic"} {
			require.EqualValues(t, 1, tel.value(t, "tenure.job.runs", "tenure.job.name", "bare", "tenure.outcome", outcome), outcome)
		}
		took := tel.find(t, "tenure.job.duration", "tenure.job.name", "bare")
		require.EqualValues(t, 3, took.count)
		require.InDelta(t, 6, took.value, 0.001)
		at := tel.value(t, "tenure.job.success_timestamp", "tenure.job.name", "bare")
		require.InDelta(t, float64(succeeded.UnixMilli())/1000, at, 0.001, "later runs failed")
		delay := tel.find(t, "tenure.job.lateness", "tenure.job.name", "bare")
		require.EqualValues(t, 3, delay.count)
		require.InDelta(t, 0, delay.value, 0.001)
		require.EqualValues(t, 1, tel.value(t, "tenure.job.skipped", "tenure.job.name", "bare", "tenure.reason", "skipped"))
		require.Zero(t, tel.value(t, "tenure.job.skipped", "tenure.job.name", "bare", "tenure.reason", "overlap"))
		require.NoError(t, s.Shutdown())
		require.Empty(t, tel.spans(), "gocron's monitors do not tell enough for spans")
	})
}

// A Scheduler that reports in both ways has each run and each skip once, and the skips with their
// reasons.
func TestSchedulerWithTracerAndMonitorsCountsOnce(t *testing.T) {
	three(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet, redlock.WithTracer(tel))
		s := newScheduler(t, tel, q, scheduler.WithGocron(tel.SchedulerOptions()...))
		_, err := s.NewJob(everyTen, gocron.NewTask(func() {}), gocron.WithName("report"))
		require.NoError(t, err)
		s.Start()
		pass(25 * time.Second)
		holder := acquire(t, q, "job/report")
		pass(10 * time.Second)
		require.NoError(t, holder.Release(t.Context()))
		pass(6 * time.Second)
		require.Equal(t, 3, tel.total(t, "tenure.job.duration", "tenure.job.name", "report"))
		require.Equal(t, 3, tel.total(t, "tenure.job.lateness", "tenure.job.name", "report"))
		require.Equal(t, 1, tel.count(t, "tenure.job.skipped", "tenure.job.name", "report"))
		require.Zero(t, tel.count(t, "tenure.job.skipped", "tenure.reason", "skipped"))
		require.Len(t, tel.spans("tenure.job.run"), 3)
	})
}

// untouchable is a job whose every method panics: gocron's loop calls JobUnregistered, and an
// accessor would stall it for a second.
type untouchable struct{ gocron.Job }

func TestJobUnregisteredAsksTheJobNothing(t *testing.T) {
	tel := newTelemetry(t)
	require.NotPanics(t, func() { tel.JobUnregistered(untouchable{}) })
	require.Panics(t, func() { tel.JobRegistered(untouchable{}) }, "the test notices")

	three(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		s := newGocron(t, open(t, fleet), newTelemetry(t).SchedulerOptions()...)
		j, err := s.NewJob(everyTen, gocron.NewTask(func() {}), gocron.WithName("bare"))
		require.NoError(t, err)
		s.Start()
		settle()
		began := time.Now()
		require.NoError(t, s.RemoveJob(j.ID()))
		settle()
		require.Zero(t, time.Since(began))
	})
}
