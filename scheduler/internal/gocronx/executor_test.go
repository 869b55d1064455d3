package gocronx_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

var (
	errUnoffered = errors.New("nothing was offered")
	errFailed    = errors.New("it failed")
	errSkipped   = errors.New("another has it")
)

// install makes a job whose name is job.
func install(t testing.TB, e *gocronx.Executor, opts ...gocron.JobOption) *gocronx.Job {
	t.Helper()
	j, err := place(e, read(t, opts...), uuid.Nil)
	require.NoError(t, err)
	j.Register()
	return j
}

// place makes a job that users see as it is.
func place(e *gocronx.Executor, d *gocronx.Definition, replaces uuid.UUID) (*gocronx.Job, error) {
	j := gocronx.NewJob(d)
	return j, e.Install(j, replaces, j)
}

// requireRemoved requires that gocron has removed a job, once it has done what it was asked.
func requireRemoved(t *testing.T, e *gocronx.Executor, j *gocronx.Job) {
	t.Helper()
	e.Gocron().Jobs()
	require.True(t, j.IsRemoved())
}

func read(t testing.TB, opts ...gocron.JobOption) *gocronx.Definition {
	t.Helper()
	d, err := newReader(t).Read(minutely, gocron.NewTask(func() {}), append([]gocron.JobOption{gocron.WithName("job")}, opts...)...)
	require.NoError(t, err)
	return d
}

// atOnce is ready.
func atOnce() error { return nil }

func succeed(context.Context) error { return nil }

// TestThirtyOffers has gocron hear of runs and skips, with all its listeners and monitors.
func TestThirtyOffers(t *testing.T) {
	r := &recorder{}
	e := newExecutor(t, r.settings()...)
	j := install(t, e, gocron.WithTags("tag"), r.listeners())
	require.Equal(t, []string{"registered job"}, r.take(1))

	due := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	begin := []string{"before job", "started job", "delay of job: scheduled %s, started then: true", "before that may refuse job", "running job", "task"}
	kinds := []struct {
		task func(context.Context) error
		told []string
	}{
		{func(context.Context) error { r.tell("task"); return nil },
			append(begin, "timed job", "after job", "counted job [tag]: success", "timed job: success, <nil>", "completed job", "took its time job")},
		{func(context.Context) error { r.tell("task"); return errFailed },
			append(begin, "timed job", "after job: it failed", "counted job [tag]: fail", "timed job: fail, it failed", "failed job: it failed", "took its time job")},
		{func(context.Context) error { r.tell("task"); panic("alas") },
			append(begin, "after panic of job: alas", "timed job", "after job: gocron: panic recovered from alas", "counted job [tag]: fail",
				"timed job: fail, gocron: panic recovered from alas", "failed job: gocron: panic recovered from alas", "took its time job")},
		{nil, []string{"lock error of job: another has it", "counted job [tag]: skip"}},
	}
	for i := range 30 {
		due := due.Add(time.Duration(i) * time.Second)
		kind := kinds[i%len(kinds)]
		want := append([]string(nil), kind.told...)
		if kind.task == nil {
			require.ErrorIs(t, j.Skip(t.Context(), errSkipped), errSkipped)
		} else {
			want[2] = fmt.Sprintf(want[2], due.Format(time.RFC3339Nano))
			require.NoError(t, j.Run(t.Context(), due, atOnce, kind.task))
		}
		require.Equal(t, want, r.take(len(want)), "offer %d", i)
	}
	for _, seen := range r.jobs {
		require.Same(t, j, seen, "what monitors see")
		require.Equal(t, every, seen.Schedule())
	}
}

func TestRunThatIsNoTickHasNoDelay(t *testing.T) {
	r := &recorder{}
	e := newExecutor(t, r.settings()...)
	j := install(t, e)
	require.NoError(t, j.Run(t.Context(), time.Time{}, atOnce, succeed))
	require.Equal(t, []string{"registered job", "started job", "running job", "timed job", "counted job []: success",
		"timed job: success, <nil>", "completed job", "took its time job"}, r.take(8))
}

func TestMonitorsSeeWhatUsersSee(t *testing.T) {
	r := &recorder{}
	e := newExecutor(t, r.settings()...)
	type public struct{ gocron.Job }
	j := gocronx.NewJob(read(t))
	shown := &public{j}
	require.NoError(t, e.Install(j, uuid.Nil, shown))
	require.Same(t, shown, e.Shown(j.ID()))
	require.False(t, j.IsRemoved())
	j.Register()
	require.NoError(t, j.Run(t.Context(), time.Now(), atOnce, succeed))
	require.NoError(t, e.Gocron().RemoveJob(j.ID()))
	requireRemoved(t, e, j)
	require.Nil(t, e.Shown(j.ID()))
	require.Contains(t, r.take(9), "unregistered job")
	require.NotEmpty(t, r.jobs)
	for _, seen := range r.jobs {
		require.Same(t, shown, seen)
	}
}

// gocron is asked for a run by no one: neither Lock nor the task does anything.
func TestLockWithoutAnOffer(t *testing.T) {
	r := &recorder{}
	e := newExecutor(t, r.settings()...)
	j := install(t, e, r.listeners())
	r.take(1)
	require.NoError(t, j.RunNow())
	require.Equal(t, []string{"lock error of job: nothing was offered", "counted job []: skip"}, r.take(2))
}

func TestNothingIsOfferedAfterShutdown(t *testing.T) {
	e := newExecutor(t)
	j := install(t, e)
	require.NoError(t, j.Run(t.Context(), time.Time{}, atOnce, succeed))
	require.NoError(t, e.Shutdown(t.Context()))
	require.NoError(t, e.Shutdown(t.Context()))
	require.ErrorIs(t, j.Run(t.Context(), time.Time{}, atOnce, succeed), gocronx.ErrStopped)
	require.ErrorIs(t, j.Skip(t.Context(), errSkipped), gocronx.ErrStopped)
	_, err := place(e, read(t), j.ID())
	require.ErrorIs(t, err, gocronx.ErrStopped)
}

func TestOffersEnd(t *testing.T) {
	e := newExecutor(t)
	parent, end := context.WithCancelCause(t.Context())
	j := install(t, e, gocron.WithContext(parent))
	require.NoError(t, j.Run(t.Context(), time.Time{}, atOnce, succeed))

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errSkipped)
	for range 50 {
		require.ErrorIs(t, j.Run(ctx, time.Time{}, atOnce, succeed), errSkipped)
	}
	end(errFailed)
	require.ErrorIs(t, j.Run(t.Context(), time.Time{}, atOnce, succeed), errFailed)

	removed := install(t, e)
	require.NoError(t, e.Gocron().RemoveJob(removed.ID()))
	requireRemoved(t, e, removed)
	require.ErrorIs(t, removed.Run(t.Context(), time.Time{}, atOnce, succeed), gocron.ErrJobNotFound)
	require.ErrorIs(t, removed.Skip(t.Context(), errSkipped), gocron.ErrJobNotFound)
}

// What gocron must not do by itself it does not do.
func TestGocronTimesNothing(t *testing.T) {
	r := &recorder{}
	e := newExecutor(t, append(r.settings(), gocron.WithLimitConcurrentJobs(1, gocron.LimitModeReschedule))...)
	id := uuid.New()
	j := install(t, e,
		gocron.WithStartAt(gocron.WithStartImmediately()),
		gocron.WithStopAt(gocron.WithStopDateTime(later)),
		gocron.WithLimitedRuns(1),
		gocron.WithSingletonMode(gocron.LimitModeReschedule),
		gocron.WithIntervalFromCompletion(),
		gocron.WithCronImplementation(ownCron{}),
		gocron.WithDisabledDistributedJobLocker(true),
		gocron.WithIdentifier(id),
		gocron.WithTags("tag"),
		gocronx.Option("WithCatchUp", 1),
	)
	require.Equal(t, id, j.ID())
	require.Equal(t, []string{"tag"}, j.Tags())
	for range 3 {
		require.NoError(t, j.Run(t.Context(), time.Time{}, atOnce, func(context.Context) error {
			last, err := j.LastRunStartedAt()
			require.NoError(t, err)
			require.WithinDuration(t, time.Now(), last, time.Minute, "it is the begin")
			return j.Run(t.Context(), time.Time{}, atOnce, succeed) // also within another
		}))
	}
	next, err := j.NextRun()
	require.NoError(t, err)
	require.Greater(t, next.Year(), 2250)
	require.Len(t, e.Gocron().Jobs(), 1)
	ran := 0
	for _, told := range r.take(43) {
		require.NotContains(t, told, "skip")
		if told == "started job" {
			ran++
		}
	}
	require.Equal(t, 6, ran)
}

// NewJob costs gocron's own, reading by gocron, and little more: 93 allocations where each tick and
// each job once needed a scheduler, 1,220.
func TestNewJobAllocates(t *testing.T) {
	r, e := newReader(t), newExecutor(t)
	allocations := testing.AllocsPerRun(100, func() {
		require.NoError(t, e.Gocron().RemoveJob(newJob(t, r, e, minutely).ID()))
	})
	require.Less(t, allocations, 130.0)
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
