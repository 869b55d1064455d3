package gocronx_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

type contextKey string

func task(t testing.TB, function any, parameters ...any) *gocronx.Task {
	t.Helper()
	d, err := newReader(t).Read(minutely, gocron.NewTask(function, parameters...))
	require.NoError(t, err)
	return d.Task
}

func TestTaskCallsTheFunction(t *testing.T) {
	ctx := context.WithValue(t.Context(), contextKey("run"), "of the run")
	var got []any
	note := func(values ...any) { got = append(got, values...) }
	pointed := func(a int) { note(a) }
	for name, tc := range map[string]struct {
		function   any
		parameters []any
		want       []any
	}{
		"alone":                  {func() { note("called") }, nil, []any{"called"}},
		"parameters":             {func(a int, b string) { note(a, b) }, []any{1, "b"}, []any{1, "b"}},
		"context":                {func(ctx context.Context) { note(ctx.Value(contextKey("run"))) }, nil, []any{"of the run"}},
		"context and parameters": {func(ctx context.Context, a int) { note(ctx.Value(contextKey("run")), a) }, []any{1}, []any{"of the run", 1}},
		"own context": {func(ctx context.Context, a int) { note(ctx.Value(contextKey("run")), ctx.Value(contextKey("own")), a) },
			[]any{context.WithValue(t.Context(), contextKey("own"), "own"), 1}, []any{"of the run", "own", 1}},
		"variadic":     {func(a int, more ...string) { note(a, more) }, []any{1, "b", "c"}, []any{1, []string{"b", "c"}}},
		"pointer":      {&pointed, []any{1}, []any{1}},
		"nil function": {(func())(nil), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got = nil
			of := task(t, tc.function, tc.parameters...)
			for range 2 {
				require.NoError(t, of.Call(ctx, nil))
			}
			require.Equal(t, append(tc.want, tc.want...), got)
		})
	}
}

func TestTaskReturnsTheFirstError(t *testing.T) {
	require.ErrorIs(t, task(t, func() error { return errFailed }).Call(t.Context(), nil), errFailed)
	require.ErrorIs(t, task(t, func() (int, any, error) { return 1, errFailed, errors.ErrUnsupported }).Call(t.Context(), nil), errFailed)
	require.NoError(t, task(t, func() (int, error) { return 1, nil }).Call(t.Context(), nil))
	require.ErrorIs(t, task(t, func() { runtime.Goexit() }).Call(t.Context(), nil), gocronx.ErrGoexit)

	err := task(t, func() error { panic(errFailed) }).Call(t.Context(), func(value any, stack []byte) error { return fmt.Errorf("%w: %s", value.(error), stack) })
	require.ErrorIs(t, err, errFailed)
	require.ErrorContains(t, err, "TestTaskReturnsTheFirstError")
}
