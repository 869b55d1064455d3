package node

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// isOver reports whether the context's channel says so, and wants its error to say the same.
func isOver(t *testing.T, ctx context.Context) bool {
	t.Helper()
	select {
	case <-ctx.Done():
		require.Equal(t, context.DeadlineExceeded, ctx.Err())
		require.True(t, wire.IsTimeout(ctx.Err()))
		return true
	default:
		require.NoError(t, ctx.Err())
		return false
	}
}

func TestTimeLimitIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit timeLimit
		var first context.Context
		for i := range 3 {
			start := time.Now()
			ctx := limit.start(time.Second)
			if i == 0 {
				first = ctx
			}
			require.Same(t, first, ctx)
			at, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, start.Add(time.Second), at)
			require.Nil(t, ctx.Value("anything"))
			time.Sleep(time.Second - 1)
			synctest.Wait()
			require.False(t, isOver(t, ctx))
			limit.stop()
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		require.False(t, isOver(t, first), "it runs on")

		ctx := limit.start(time.Second)
		start := time.Now()
		<-ctx.Done()
		require.Equal(t, time.Second, time.Since(start))
		require.True(t, isOver(t, ctx))
	})
}

// What has run out may still be in somebody's hands, for whom it must not begin anew.
func TestTimeLimitThatRanOutIsNotUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit timeLimit
		old := limit.start(time.Second)
		time.Sleep(time.Second)
		synctest.Wait()
		require.True(t, isOver(t, old))
		limit.stop()

		ctx := limit.start(time.Second)
		require.NotSame(t, old, ctx)
		require.False(t, isOver(t, ctx))
		require.True(t, isOver(t, old))
		derived, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		<-derived.Done()
		require.True(t, isOver(t, ctx))
		require.Equal(t, context.DeadlineExceeded, derived.Err())
		limit.stop()
	})
}
