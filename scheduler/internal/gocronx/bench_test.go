package gocronx_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

// BenchmarkNewJob is the door's part of NewJob. BenchmarkNewJobFloor is gocron's own.
func BenchmarkNewJob(b *testing.B) {
	for name, definition := range kinds {
		b.Run(name, func(b *testing.B) {
			r, e := newReader(b), newExecutor(b)
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, e.Gocron().RemoveJob(newJob(b, r, e, definition).ID()))
			}
		})
	}
}

func BenchmarkNewJobFloor(b *testing.B) {
	for name, definition := range kinds {
		b.Run(name, func(b *testing.B) {
			s, err := gocron.NewScheduler()
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, s.Shutdown()) })
			b.ReportAllocs()
			for b.Loop() {
				j, err := s.NewJob(definition, gocron.NewTask(func() {}), gocron.WithName("job"))
				require.NoError(b, err)
				require.NoError(b, s.RemoveJob(j.ID()))
			}
		})
	}
}

var kinds = map[string]gocron.JobDefinition{
	"cron":     gocron.CronJob("30 2 * * *", false),
	"duration": gocron.DurationJob(time.Minute),
	"daily":    gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(2, 30, 0))),
}

func newJob(t testing.TB, r *gocronx.Reader, e *gocronx.Executor, definition gocron.JobDefinition) *gocronx.Job {
	d, err := r.Read(definition, gocron.NewTask(func() {}), gocron.WithName("job"), gocronx.Option("WithCatchUp", time.Hour),
		gocron.WithTags("a", "b"), gocron.WithStartAt(gocron.WithStartDateTimePast(time.Unix(1e9, 0))))
	require.NoError(t, err)
	j, err := place(e, d, uuid.Nil)
	require.NoError(t, err)
	return j
}

func newReader(t testing.TB) *gocronx.Reader {
	t.Helper()
	r, err := gocronx.NewReader(time.UTC)
	require.NoError(t, err)
	return r
}

func newExecutor(t testing.TB, opts ...gocron.SchedulerOption) *gocronx.Executor {
	t.Helper()
	s, err := gocronx.ReadSettings(opts...)
	require.NoError(t, err)
	e, err := gocronx.NewExecutor(s, time.UTC, 10*time.Second, func(string) error { return errUnoffered })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Shutdown(context.Background())) })
	return e
}
