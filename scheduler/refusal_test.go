package scheduler_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// quorumFor opens a Quorum on in-process nodes.
func quorumFor(t *testing.T, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	fleet := redlocktest.Start(t, 3)
	return open(t, fleet.URLs(), append(opts, redlock.WithClientOption(fleet.ClientOption))...)
}

// made makes a Scheduler that is shut down with the test.
func made(t *testing.T, q *redlock.Quorum, opts ...scheduler.Option) *scheduler.Scheduler {
	t.Helper()
	s, err := scheduler.New(q, append([]scheduler.Option{scheduler.WithLogger(silent)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Shutdown()) })
	return s
}

func TestSchedulerRefusesOptions(t *testing.T) {
	q, short := quorumFor(t), quorumFor(t, redlock.WithTTL(2*time.Second))
	lease, ofGocron := scheduler.WithLeaseOptions, scheduler.WithGocron
	for _, tc := range []struct {
		q              *redlock.Quorum
		opt            scheduler.Option
		option, reason string
	}{
		{nil, scheduler.WithLocation(time.UTC), "q", "is nil: make a Quorum"},
		{q, nil, "Option", "option 0 is nil"},
		{q, scheduler.WithElection(""), "WithElection", "the name is empty"},
		{q, scheduler.WithLocation(nil), "WithLocation", "use time.UTC or time.Local"},
		{q, scheduler.WithLogger(nil), "WithLogger", "slog.DiscardHandler"},
		{q, scheduler.WithTracer(nil), "WithTracer", "leave the option out"},
		{q, scheduler.WithStopTimeout(0), "WithStopTimeout", "is not between 1ns and 24h0m0s"},
		{q, scheduler.WithStopTimeout(scheduler.MaxTimeout + 1), "WithStopTimeout", "24h0m0.000000001s is not between"},
		{q, scheduler.WithJobOptions(gocron.WithTags("a"), nil), "WithJobOptions", "option 1 is nil"},
		{q, lease(redlock.WithIdentity("a"), nil), "WithLeaseOptions", "option 1 is nil"},
		{q, lease(redlock.WithTTL(time.Millisecond)), "WithTTL", "1ms is below the minimum of 1s"},
		{q, lease(redlock.WithoutAutoExtend()), "redlock.WithoutAutoExtend", "not for jobs"},
		{short, lease(redlock.WithMinHold(3 * time.Second)), "WithMinHold", "3s is not below the TTL of 2s"},
		{q, ofGocron(gocron.WithLogger(gocron.NewLogger(gocron.LogLevelError)), nil), "WithGocron", "option 1 is nil"},
		{q, ofGocron(gocron.WithDistributedElector(leader{})), "gocron.WithDistributedElector", "use WithElection"},
		{q, ofGocron(gocron.WithDistributedLocker(forbidden{t})), "gocron.WithDistributedLocker", "leave it out"},
		{q, ofGocron(gocron.WithClock(clockwork.NewRealClock())), "gocron.WithClock", "testing/synctest"},
		{q, ofGocron(gocron.WithLocation(time.UTC)), "gocron.WithLocation", "use WithLocation of this package"},
		{q, ofGocron(gocron.WithStopTimeout(time.Second)), "gocron.WithStopTimeout", "use WithStopTimeout of this package"},
		{q, ofGocron(gocron.WithGlobalJobOptions(gocron.WithTags("tag"))), "gocron.WithGlobalJobOptions", "use WithJobOptions of this package"},
	} {
		s, err := scheduler.New(tc.q, tc.opt)
		require.Nil(t, s)
		requireInvalid(t, err, tc.option, tc.reason)
	}
	_, err := scheduler.New(q, ofGocron(gocron.WithLimitConcurrentJobs(0, gocron.LimitModeWait)))
	require.ErrorIs(t, err, gocron.ErrWithLimitConcurrentJobsZero, "gocron's own errors are passed on")
}

func TestSchedulerRefusesJobs(t *testing.T) {
	s := made(t, quorumFor(t))
	task, name := gocron.NewTask(func() {}), gocron.WithName("job")
	there, err := s.NewJob(secondly, task, gocron.WithName("there"))
	require.NoError(t, err)
	const longest = redlock.MaxKeyLength - len("pause/"+scheduler.KeyPrefix)
	for _, tc := range []struct {
		definition     gocron.JobDefinition
		task           gocron.Task
		opts           []gocron.JobOption
		option, reason string
	}{
		{nil, task, []gocron.JobOption{name}, "definition", "is nil: use gocron.CronJob"},
		{secondly, task, nil, "gocron.WithName", "the job has no name"},
		{secondly, task, []gocron.JobOption{gocron.WithName("caf\xe9")}, "gocron.WithName", "is not UTF-8"},
		{secondly, task, []gocron.JobOption{gocron.WithName(string(make([]byte, longest+1)))}, "gocron.WithName", "give it a shorter one"},
		{secondly, task, []gocron.JobOption{gocron.WithName("there")}, "gocron.WithName", `there is a job of the name "there" already`},
		{secondly, task, []gocron.JobOption{name, nil}, "gocron.JobOption", "option 1 is nil"},
		{secondly, task, []gocron.JobOption{name, gocron.WithEventListeners(nil)}, "gocron.JobOption", "option 1 panics"},
		{secondly, task, []gocron.JobOption{name, gocron.WithDistributedJobLocker(forbidden{t})}, "gocron.WithDistributedJobLocker", "leave it out"},
		{gocron.CronJob("@every 1m", false), task, []gocron.JobOption{name}, "gocron.CronJob", "use gocron.DurationJob"},
		{gocron.DurationJob(scheduler.MinInterval - 1), task, []gocron.JobOption{name}, "gocron.DurationJob", "is not between 10ms and"},
		{gocron.DurationJob(scheduler.MaxSpan + 1), task, []gocron.JobOption{name}, "gocron.DurationJob", "and 87600h0m0s"},
		{secondly, gocron.NewTask(func(*int) {}, nil), []gocron.JobOption{name}, "task", "the parameters do not fit the function"},
		{secondly, task, []gocron.JobOption{name, scheduler.WithCatchUp(time.Hour, 3)}, "WithCatchUp", "unknown (3) is none of"},
		{secondly, task, []gocron.JobOption{name, scheduler.WithCatchUp(time.Hour, scheduler.CatchUpNone)}, "WithCatchUp", "CatchUpNone has no window"},
		{secondly, task, []gocron.JobOption{name, scheduler.WithCatchUp(0, scheduler.CatchUpLatest)}, "WithCatchUp", "0s is not between 1ns and 87600h0m0s"},
		{secondly, task, []gocron.JobOption{name, scheduler.WithCatchUp(scheduler.MaxSpan+1, scheduler.CatchUpAll)}, "WithCatchUp", "and 87600h0m0s"},
		{secondly, task, []gocron.JobOption{name, scheduler.WithDelivery(2)}, "WithDelivery", "neither AtMostOnce nor AtLeastOnce"},
		{secondly, task, []gocron.JobOption{name, scheduler.WithDelivery(scheduler.AtLeastOnce)}, "WithDelivery", "say with WithCatchUp for how long"},
		{secondly, task, []gocron.JobOption{name, scheduler.WithOverlap(3)}, "WithOverlap", "is none of OverlapSkip"},
		{secondly, task, []gocron.JobOption{name, scheduler.WithRunbook("javascript:alert(1)")}, "WithRunbook", "https://"},
		{secondly, task, []gocron.JobOption{name, scheduler.WithRunbook("https://" + strings.Repeat("x", 249))}, "WithRunbook", "256 bytes"},
		{secondly, task, []gocron.JobOption{name, scheduler.WithRetry(0, 0)}, "WithRetry", "0 retries are not 1 to 100"},
		{secondly, task, []gocron.JobOption{name, scheduler.WithRetry(scheduler.MaxRetries+1, 0)}, "WithRetry", "101 retries"},
		{secondly, task, []gocron.JobOption{name, scheduler.WithRetry(1, math.MaxInt64)}, "WithRetry", "is not between 0s and 1h0m0s"},
		{secondly, task, []gocron.JobOption{name, scheduler.WithSucceedWithin(math.MaxInt64)}, "WithSucceedWithin", "and 87600h0m0s"},
	} {
		j, err := s.NewJob(tc.definition, tc.task, tc.opts...)
		require.Nil(t, j, "%s: %s", tc.option, tc.reason)
		requireInvalid(t, err, tc.option, tc.reason)
	}
	other, err := s.NewJob(secondly, task, gocron.WithName("other"))
	require.NoError(t, err)
	_, err = s.Update(other.ID(), secondly, task, gocron.WithName("there"))
	requireInvalid(t, err, "gocron.WithName", `there is a job of the name "there" already`)
	_, err = s.Update(there.ID(), secondly, task, gocron.WithName("there"))
	require.NoError(t, err, "its own name")
	for want, of := range map[error]func() (gocron.Job, error){
		gocron.ErrNewJobTaskNil:     func() (gocron.Job, error) { return s.NewJob(secondly, nil, name) },
		gocron.ErrNewJobTaskNotFunc: func() (gocron.Job, error) { return s.NewJob(secondly, gocron.NewTask("text"), name) },
		gocron.ErrNewJobWrongNumberOfParameters: func() (gocron.Job, error) {
			return s.NewJob(secondly, gocron.NewTask(func(int) {}), name)
		},
		gocron.ErrNewJobWrongTypeOfParameters: func() (gocron.Job, error) {
			return s.NewJob(secondly, gocron.NewTask(func(int) {}, "text"), name)
		},
		gocron.ErrCronJobParse: func() (gocron.Job, error) { return s.NewJob(gocron.CronJob("no crontab", false), task, name) },
	} {
		_, err := of()
		require.ErrorIs(t, err, want)
	}
	require.Len(t, s.Jobs(), 2, "nothing is left of what was refused")
}

// All kinds of jobs are taken, on the most extreme bounds too, and say what they were asked for.
func TestSchedulerTakesJobs(t *testing.T) {
	s := made(t, quorumFor(t), scheduler.WithLocation(time.UTC), scheduler.WithJobOptions(gocron.WithTags("all"), scheduler.WithCatchUp(scheduler.MaxSpan, scheduler.CatchUpAll)))
	midnight := gocron.NewAtTimes(gocron.NewAtTime(0, 0, 0))
	tomorrow := time.Now().Add(24 * time.Hour)
	id := uuid.New()
	definitions := map[string]gocron.JobDefinition{
		"cron": secondly, "shortest": gocron.DurationJob(scheduler.MinInterval), "longest": gocron.DurationJob(scheduler.MaxSpan),
		"random": gocron.DurationRandomJob(time.Second, time.Minute), "daily": gocron.DailyJob(2, midnight),
		"weekly": gocron.WeeklyJob(1, gocron.NewWeekdays(time.Monday), midnight), "monthly": gocron.MonthlyJob(3, gocron.NewDaysOfTheMonth(1, -1), midnight),
		"once": gocron.OneTimeJob(gocron.OneTimeJobStartDateTimes(tomorrow, tomorrow.Add(time.Hour))), "past": gocron.OneTimeJob(gocron.OneTimeJobStartDateTime(time.Now().Add(-time.Hour))),
		"at once": gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
	}
	for name, d := range definitions {
		j, err := s.NewJob(d, gocron.NewTask(func() {}), gocron.WithName(name))
		require.NoError(t, err, name)
		require.Equal(t, name, j.Name())
		require.Equal(t, []string{"all"}, j.Tags())
	}
	j, err := s.NewJob(gocron.CronJob("30 2 * * *", false), gocron.NewTask(func() {}), gocron.WithName("options"), gocron.WithTags("own"), gocron.WithIdentifier(id),
		gocron.WithStopAt(gocron.WithStopDateTime(tomorrow.AddDate(0, 0, 3))), gocron.WithIntervalFromCompletion(), gocron.WithLimitedRuns(3), gocron.WithContext(context.Background()),
		scheduler.WithRetry(scheduler.MaxRetries, time.Hour), scheduler.WithOverlap(scheduler.OverlapCancel), scheduler.WithSucceedWithin(1), scheduler.WithDelivery(scheduler.AtLeastOnce))
	require.NoError(t, err)
	require.Equal(t, id, j.ID())
	runs, err := j.NextRuns(10)
	require.NoError(t, err)
	require.NotEmpty(t, runs)
	require.Less(t, len(runs), 5, "until the stop")
	for _, at := range runs {
		require.Equal(t, "02:30:00 UTC", at.Format("15:04:05 MST"))
	}
	s.RemoveByTags("own")
	require.Len(t, s.Jobs(), len(definitions))
	_, err = j.NextRun()
	require.ErrorIs(t, err, gocron.ErrJobNotFound)
	require.ErrorIs(t, s.RemoveJob(id), gocron.ErrJobNotFound)
}

// A nil context is refused; a lock is freed all the same. A deferred Shutdown may stand before the
// check of New's error.
func TestNilIsRefusedOrHarmless(t *testing.T) {
	q := quorumFor(t)
	s, l := made(t, q), newLocker(t, q)
	lock := mustLock(t, l, "held")
	var none context.Context
	for _, call := range []func() error{
		func() error { _, err := l.Lock(none, "job"); return err },
		func() error { return s.StopJobsWithContext(none) },
		func() error { return s.ShutdownWithContext(none) },
	} {
		requireInvalid(t, call(), "ctx", "is nil")
	}
	_, ok := scheduler.RunFromContext(none)
	require.False(t, ok)
	require.NoError(t, lock.Unlock(none))
	for _, s := range []*scheduler.Scheduler{nil, {}} {
		require.NoError(t, s.Shutdown())
		require.NoError(t, s.ShutdownWithContext(t.Context()))
		require.NoError(t, s.StopJobs())
		require.NoError(t, s.StopJobsWithContext(t.Context()))
		require.ErrorIs(t, s.Healthy(), scheduler.ErrNotRunning)
		require.Nil(t, s.Elector())
	}
	require.Zero(t, scheduler.Run{}.Lease())
}

func TestLockerRefusesOptions(t *testing.T) {
	q, short, slow := quorumFor(t), quorumFor(t, redlock.WithTTL(2*time.Second)), quorumFor(t, redlock.WithNodeTimeout(time.Second))
	lease := scheduler.WithLeaseOptions
	for _, tc := range []struct {
		q              *redlock.Quorum
		opt            scheduler.LockerOption
		option, reason string
	}{
		{nil, scheduler.WithMinHold(0), "q", "is nil"},
		{q, nil, "LockerOption", "option 0 is nil"},
		{q, scheduler.WithMinHold(-1), "WithMinHold", "negative"},
		{q, scheduler.WithMinHold(math.MaxInt64), "WithMinHold", "is not below the TTL"},
		{short, scheduler.WithTryTimeout(time.Second), "WithMinHold", "2s is not below the TTL of 2s"},
		{q, scheduler.WithTryTimeout(9 * time.Millisecond), "WithTryTimeout", "9ms is not between 10ms and"},
		{q, scheduler.WithTryTimeout(scheduler.MaxTimeout + 1), "WithTryTimeout", "is not between 10ms and 24h0m0s"},
		{q, scheduler.WithLogger(nil), "WithLogger", "slog.DiscardHandler"},
		{q, lease(redlock.WithIdentity("a"), nil), "WithLeaseOptions", "option 1 is nil"},
		{q, lease(redlock.WithIdentity("")), "WithIdentity", "must be 1 to 256 bytes"},
		{q, lease(redlock.WithTTL(3*time.Second + 1)), "WithTTL", "whole number of milliseconds"},
		{slow, lease(redlock.WithTTL(3 * time.Second)), "WithNodeTimeout", "more than a quarter of the TTL of 3s"},
		{q, lease(redlock.WithoutAutoExtend()), "redlock.WithoutAutoExtend", "not for jobs"},
	} {
		l, err := scheduler.NewLocker(tc.q, tc.opt)
		require.Nil(t, l)
		requireInvalid(t, err, tc.option, tc.reason)
	}
	got := mustLock(t, newLocker(t, q, lease(redlock.WithTTL(3*time.Second), redlock.WithIdentity("replica-a"), redlock.WithMinHold(time.Second))), "report").Lease()
	require.Equal(t, []any{"job/report", 3 * time.Second, "replica-a"}, []any{got.Key(), got.TTL(), got.Identity()})
}

// leader is a gocron.Elector that always leads.
type leader struct{}

func (leader) IsLeader(context.Context) error { return nil }

// forbidden is a gocron.Locker that must not be asked.
type forbidden struct{ t *testing.T }

func (f forbidden) Lock(_ context.Context, name string) (gocron.Lock, error) {
	f.t.Errorf("gocron asked the locker for %q although it has an elector: adjust the package documentation", name)
	return nil, context.Canceled
}
