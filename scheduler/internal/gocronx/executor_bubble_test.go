package gocronx_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/scheduler/internal/gocronx"
)

// blocked has a monitor keep gocron's loop busy.
func blocked(t *testing.T, r *recorder, e *gocronx.Executor, d time.Duration) {
	r.block = func() { time.Sleep(d) }
	require.NoError(t, e.Gocron().RemoveJob(install(t, e).ID()))
	synctest.Wait()
	r.block = nil
}

func TestRunWhileGocronIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		e := newExecutor(t, r.settings()...)
		j := install(t, e, r.listeners())
		blocked(t, r, e, 400*time.Millisecond)
		r.take(0)
		begin := time.Now()
		require.ErrorIs(t, j.RunNow(), gocron.ErrJobRunNowFailed)
		require.Equal(t, 100*time.Millisecond, time.Since(begin), "gocron's own gives up")
		var began time.Duration
		require.NoError(t, j.Run(t.Context(), begin, atOnce, func(context.Context) error { began = time.Since(begin); return nil }))
		require.Equal(t, 400*time.Millisecond, began)
		require.Len(t, r.take(0), 11, "one run, and no skip")
	})
}

// A run whose lease was lost may go on while the next begins.
func TestRunsAtATimeHaveTheirOwnTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slow sync.Once
		e := newExecutor(t)
		j := install(t, e, gocron.WithEventListeners(gocron.BeforeJobRuns(func(uuid.UUID, string) {
			slow.Do(func() { time.Sleep(time.Second) }) // it has called Lock, and has not come to the task
		})))
		began := make(chan string, 3)
		end, over := make(chan struct{}), make(chan error, 2)
		task := func(name string) func(context.Context) error {
			return func(context.Context) error { began <- name; <-end; return nil }
		}
		go func() { over <- j.Run(t.Context(), time.Time{}, atOnce, task("first")) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		require.ErrorIs(t, j.Run(ctx, time.Time{}, atOnce, task("never")), context.DeadlineExceeded, "it waits for its turn")
		require.Empty(t, began)
		go func() { over <- j.Run(t.Context(), time.Time{}, atOnce, task("second")) }()
		time.Sleep(time.Second)
		synctest.Wait()
		require.ElementsMatch(t, []string{"first", "second"}, []string{<-began, <-began})
		running, err := j.IsRunning()
		require.NoError(t, err)
		require.True(t, running)
		close(end)
		require.NoError(t, <-over)
		require.NoError(t, <-over)
	})
}

// An offer that waits for its turn ends with the Executor, not only with its context.
func TestStopEndsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newExecutor(t)
		j := install(t, e, gocron.WithEventListeners(gocron.BeforeJobRuns(func(uuid.UUID, string) { time.Sleep(5 * time.Second) })))
		over := make(chan error, 1)
		go func() { over <- j.Run(t.Context(), time.Time{}, atOnce, succeed) }()
		synctest.Wait()
		begin := time.Now()
		stopped := make(chan error, 1)
		time.AfterFunc(time.Second, func() { stopped <- e.Shutdown(t.Context()) })
		require.ErrorIs(t, j.Run(t.Context(), time.Time{}, atOnce, succeed), gocronx.ErrStopped)
		require.Equal(t, time.Second, time.Since(begin))
		require.NoError(t, <-over)
		require.NoError(t, <-stopped)
	})
}
