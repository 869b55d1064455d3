package scheduler_test

import (
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// A job that is moved from gocron by one line stays at its hour, which is the machine's, and the
// log says which that is. The test sets the zone of the process, so it is not parallel.
func TestMovingFromGocronKeepsTheHour(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	local := time.Local
	time.Local = berlin
	t.Cleanup(func() { time.Local = local })
	clock := clockwork.NewFakeClockAt(time.Date(2026, time.July, 1, 12, 0, 0, 0, time.UTC))
	next := func(s gocron.Scheduler) time.Time {
		j, err := s.NewJob(gocron.CronJob("0 3 * * *", false), scheduler.NewTask(func() {}), gocron.WithName("report"))
		require.NoError(t, err)
		s.Start()
		t.Cleanup(func() { require.NoError(t, s.Shutdown()) })
		at, err := j.NextRun()
		require.NoError(t, err)
		return at
	}
	before, err := gocron.NewScheduler(gocron.WithClock(clock))
	require.NoError(t, err)
	q := open(t, redlocktest.Start(t, 1).URLs())
	log := new(journal)
	after, err := scheduler.New(q, scheduler.WithClock(clock), scheduler.WithLogger(log.logger()))
	require.NoError(t, err)
	want := time.Date(2026, time.July, 2, 1, 0, 0, 0, time.UTC)
	require.Equal(t, want, next(before).UTC())
	require.Equal(t, want, next(after).UTC())
	require.Len(t, log.lines("zone=Europe/Berlin now=2026-07-01T14:00:00+02:00"), 1)

	other := new(journal)
	told, err := scheduler.New(q, scheduler.WithLocation(time.UTC), scheduler.WithLogger(other.logger()))
	require.NoError(t, err)
	require.NoError(t, told.Shutdown())
	require.Len(t, other.lines("zone=UTC"), 1)
}
