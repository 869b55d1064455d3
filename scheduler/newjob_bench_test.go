package scheduler_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// BenchmarkNewJob beside BenchmarkNewJobFloor, which is gocron's own NewJob.
func BenchmarkNewJob(b *testing.B) {
	for name, definition := range newJobKinds {
		b.Run(name, func(b *testing.B) {
			fleet := redlocktest.Start(b, 3)
			q, err := redlock.Open(fleet.URLs(), redlock.WithLogger(silent), redlock.WithoutRestartGate(), redlock.WithClientOption(fleet.ClientOption))
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, q.Close()) })
			s, err := scheduler.New(q, scheduler.WithLogger(slog.New(slog.DiscardHandler)))
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, s.Shutdown()) })
			benchNewJob(b, s, definition, scheduler.NewTask)
		})
	}
}

// BenchmarkNewJobFloor is gocron's own.
func BenchmarkNewJobFloor(b *testing.B) {
	for name, definition := range newJobKinds {
		b.Run(name, func(b *testing.B) {
			s, err := gocron.NewScheduler()
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, s.Shutdown()) })
			benchNewJob(b, s, definition, gocron.NewTask)
		})
	}
}

var newJobKinds = map[string]gocron.JobDefinition{
	"cron":     gocron.CronJob("30 2 * * *", false),
	"duration": gocron.DurationJob(time.Minute),
	"daily":    gocron.DailyJob(1, gocron.NewAtTimes(gocron.NewAtTime(2, 30, 0))),
}

func benchNewJob(b *testing.B, s gocron.Scheduler, definition gocron.JobDefinition, task func(any, ...any) gocron.Task) {
	b.ReportAllocs()
	for b.Loop() {
		j, err := s.NewJob(definition, task(func() {}), gocron.WithName("job"))
		if err != nil {
			b.Fatal(err)
		}
		if err := s.RemoveJob(j.ID()); err != nil {
			b.Fatal(err)
		}
	}
}
