package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler"
)

// outcome is what a run's listeners were told.
type outcome struct {
	err   error
	value any // of a panic
}

// taskRunner makes a job that is due at once, and returns the outcome of its run.
type taskRunner func(t *testing.T, task gocron.Task) outcome

// runners are a bare gocron scheduler, and this package's.
func runners(t *testing.T) map[string]taskRunner {
	t.Helper()
	q := quorumFor(t)
	return map[string]taskRunner{
		"bare gocron": func(t *testing.T, task gocron.Task) outcome {
			s := newScheduler(t)
			return runTask(t, s, task)
		},
		"Scheduler": func(t *testing.T, task gocron.Task) outcome {
			s, err := scheduler.New(q, scheduler.WithLogger(slog.New(slog.DiscardHandler)))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Shutdown()) })
			return runTask(t, s, task)
		},
	}
}

func runTask(t *testing.T, s gocron.Scheduler, task gocron.Task) outcome {
	t.Helper()
	done := make(chan outcome, 1)
	j, err := s.NewJob(gocron.DurationJob(time.Hour), task, gocron.WithName(t.Name()), gocron.WithEventListeners(
		gocron.AfterJobRuns(func(uuid.UUID, string) { done <- outcome{} }),
		gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) {
			if !errors.Is(err, gocron.ErrPanicRecovered) {
				done <- outcome{err: err}
			}
		}),
		gocron.AfterJobRunsWithPanic(func(_ uuid.UUID, _ string, value any) { done <- outcome{value: value} }),
		gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { done <- outcome{err: err} }),
	))
	require.NoError(t, err)
	s.Start()
	require.NoError(t, j.RunNow())
	select {
	case o := <-done:
		return o
	case <-time.After(patience):
		require.Fail(t, "the job did not run")
		return outcome{}
	}
}

// failure is an error, of a type of its own.
type failure struct{ text string }

func (f *failure) Error() string { return f.text }

func TestTaskShapes(t *testing.T) {
	type ownKey struct{}
	own := context.WithValue(t.Context(), ownKey{}, "own")
	failed := errors.New("failed")
	var got []any // written by the task, read when it is over
	take := func(v ...any) { got = append(got, v...) }
	pointed := func(a int) { take(a) }
	var nothing func()
	type point struct{ x, y int }
	for name, tc := range map[string]struct {
		function   any
		parameters []any
		want       []any
		outcome    outcome
	}{
		"nothing":               {func() { take("ran") }, nil, []any{"ran"}, outcome{}},
		"parameters":            {func(a int, b string, c point) { take(a, b, c) }, []any{1, "b", point{2, 3}}, []any{1, "b", point{2, 3}}, outcome{}},
		"pointer":               {func(p *point) { take(p.x) }, []any{&point{x: 4}}, []any{4}, outcome{}},
		"variadic":              {func(a ...int) { take(len(a), a[2]) }, []any{1, 2, 3}, []any{3, 3}, outcome{}},
		"variadic, one":         {func(a ...int) { take(len(a)) }, []any{1}, []any{1}, outcome{}},
		"variadic, none":        {func(a ...int) { take(len(a)) }, nil, []any{0}, outcome{}},
		"and a variadic":        {func(s string, a ...int) { take(s, len(a)) }, []any{"s", 1, 2}, []any{"s", 2}, outcome{}},
		"context":               {func(ctx context.Context) { take(ctx.Err() == nil) }, nil, []any{true}, outcome{}},
		"context and more":      {func(ctx context.Context, a int) { take(ctx != nil, a) }, []any{5}, []any{true, 5}, outcome{}},
		"own context":           {func(ctx context.Context, a int) { take(ctx.Value(ownKey{}), a) }, []any{own, 6}, []any{"own", 6}, outcome{}},
		"two contexts":          {func(a, b context.Context) { take(a.Value(ownKey{}), b == own) }, []any{own, own}, []any{"own", true}, outcome{}},
		"context and variadic":  {func(ctx context.Context, a ...string) { take(ctx != nil, len(a)) }, []any{"x", "y"}, []any{true, 2}, outcome{}},
		"pointer to a function": {&pointed, []any{7}, []any{7}, outcome{}},
		"nil function":          {nothing, nil, nil, outcome{}},
		"error":                 {func() error { return failed }, nil, nil, outcome{err: failed}},
		"nil error":             {func() error { return nil }, nil, nil, outcome{}},
		//lint:ignore ST1008 gocron takes an error in any place
		"error first":          {func() (error, int) { return failed, 1 }, nil, nil, outcome{err: failed}},
		"error last":           {func() (int, string, error) { return 1, "", failed }, nil, nil, outcome{err: failed}},
		"first of two errors":  {func() (error, error) { return failed, errors.New("second") }, nil, nil, outcome{err: failed}},
		"second of two errors": {func() (error, error) { return nil, failed }, nil, nil, outcome{err: failed}},
		"error as any":         {func() any { return failed }, nil, nil, outcome{err: failed}},
		"no error as any":      {func() any { return 5 }, nil, nil, outcome{}},
		"error of a type":      {func() *failure { return &failure{"own type"} }, nil, nil, outcome{err: &failure{"own type"}}},
		"panic":                {func() { panic("ouch") }, nil, nil, outcome{value: "ouch"}},
	} {
		for where, run := range runners(t) {
			t.Run(name+"/"+where, func(t *testing.T) {
				got = nil
				require.Equal(t, tc.outcome, run(t, scheduler.NewTask(tc.function, tc.parameters...)))
				require.Equal(t, tc.want, got)
			})
		}
	}
}

// What gocron has against a task is what NewJob returns.
func TestTasksThatGocronRefuses(t *testing.T) {
	s := made(t, quorumFor(t))
	var nilPointer *func()
	for name, tc := range map[string]struct {
		function   any
		parameters []any
		want       error
	}{
		"nil":               {nil, nil, gocron.ErrNewJobTaskNotFunc},
		"nil pointer":       {nilPointer, nil, gocron.ErrNewJobTaskNotFunc},
		"no function":       {"text", nil, gocron.ErrNewJobTaskNotFunc},
		"too few":           {func(int) {}, nil, gocron.ErrNewJobWrongNumberOfParameters},
		"too many":          {func() {}, []any{1}, gocron.ErrNewJobWrongNumberOfParameters},
		"wrong type":        {func(int) {}, []any{"text"}, gocron.ErrNewJobWrongTypeOfParameters},
		"wrong variadic":    {func(...int) {}, []any{1, "text"}, gocron.ErrNewJobWrongTypeOfParameters},
		"context not first": {func(int, context.Context) {}, []any{1}, gocron.ErrNewJobWrongNumberOfParameters},
	} {
		t.Run(name, func(t *testing.T) {
			bare := newScheduler(t)
			_, err := bare.NewJob(secondly, gocron.NewTask(tc.function, tc.parameters...), gocron.WithName("job"))
			require.ErrorIs(t, err, tc.want)
			_, err = bare.NewJob(secondly, scheduler.NewTask(tc.function, tc.parameters...), gocron.WithName("job"))
			require.ErrorIs(t, err, tc.want)
			_, err = s.NewJob(secondly, scheduler.NewTask(tc.function, tc.parameters...), gocron.WithName("job"))
			require.ErrorIs(t, err, tc.want)
		})
	}
	for name, task := range map[string]func() gocron.Task{
		"nil parameter":           func() gocron.Task { return scheduler.NewTask(func(*int) {}, nil) },
		"too few before variadic": func() gocron.Task { return scheduler.NewTask(func(int, ...string) {}) },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.NewJob(secondly, task(), gocron.WithName("job"))
			var invalid *scheduler.OptionError
			require.ErrorAs(t, err, &invalid, "gocron itself panics")
			require.Contains(t, invalid.Reason, "the parameters do not fit the function, or one is nil")
		})
	}
}

// A task's own context ends its run too, and the run's context reaches the task beside it.
func TestOwnContextOfATask(t *testing.T) {
	for where, run := range runners(t) {
		t.Run(where, func(t *testing.T) {
			own, cancel := context.WithCancelCause(t.Context())
			enough := errors.New("enough")
			o := run(t, scheduler.NewTask(func(ctx context.Context) error {
				_, inRun := scheduler.RunFromContext(ctx)
				cancel(enough)
				<-ctx.Done()
				return fmt.Errorf("%v: %w", inRun, context.Cause(ctx))
			}, own))
			require.ErrorIs(t, o.err, enough)
			require.EqualError(t, o.err, fmt.Sprintf("%v: enough", where == "Scheduler"))
		})
	}
}
