package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// bare makes gocron's own scheduler.
func bare(t *testing.T, opts ...gocron.SchedulerOption) gocron.Scheduler {
	t.Helper()
	s, err := gocron.NewScheduler(opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Shutdown()) })
	return s
}

// One story on real servers: a Locker in gocron's scheduler, and a Scheduler, have leases while
// they run, and none after Shutdown.
func TestRunsOnServers(t *testing.T) {
	// gocron does not try again what a slow node kept from running.
	q := open(t, valkeytest.Start(t, 3).URLs(), redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(15*time.Second))
	running := make(chan struct{})
	task := gocron.NewTask(func(ctx context.Context) {
		running <- struct{}{}
		<-ctx.Done()
	})
	for _, s := range []gocron.Scheduler{bare(t, gocron.WithDistributedLocker(newLocker(t, q))), made(t, q)} {
		_, err := s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), task, gocron.WithName("job"))
		require.NoError(t, err)
		s.Start()
		<-running
		_, err = q.Holder(t.Context(), jobKey)
		require.NoError(t, err)
		require.NoError(t, s.StopJobs())
		_, err = q.Holder(t.Context(), jobKey)
		require.ErrorIs(t, err, redlock.ErrNotHeld)
	}
}

// The package documentation warns of this; the test tells when a later gocron behaves differently.
func TestTrap01ElectorDisablesLockers(t *testing.T) {
	s := bare(t, gocron.WithDistributedElector(leader{}), gocron.WithDistributedLocker(forbidden{t}))
	ran := make(chan struct{})
	_, err := s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(func() { close(ran) }), gocron.WithName("job"), gocron.WithDistributedJobLocker(forbidden{t}))
	require.NoError(t, err)
	s.Start()
	<-ran
}

// A job that is moved from gocron by one line stays at its hour, which is the machine's, and the
// log says which that is.
func TestMovingFromGocronKeepsTheHour(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	local := time.Local
	time.Local = berlin
	t.Cleanup(func() { time.Local = local })
	q := open(t, redlocktest.Start(t, 1).URLs())
	log := new(journal)
	next := func(s gocron.Scheduler) string {
		j, err := s.NewJob(gocron.CronJob("0 3 * * *", false), gocron.NewTask(func() {}), gocron.WithName("report"))
		require.NoError(t, err)
		s.Start()
		at, err := j.NextRun()
		require.NoError(t, err)
		return at.In(berlin).Format("15:04")
	}
	after := made(t, q, scheduler.WithLogger(log.logger()))
	require.Equal(t, "03:00", next(bare(t)))
	require.Equal(t, "03:00", next(after))
	require.Len(t, log.lines(`zone="Local +01:00+02:00"`), 1)
	made(t, q, scheduler.WithLocation(time.UTC), scheduler.WithLogger(log.logger()))
	require.Len(t, log.lines("zone=UTC"), 1)
}
