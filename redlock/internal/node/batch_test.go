package node

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
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

// runs reports whether another goroutine that can run has run when the writer goes on.
func (g *gather) runs(c *clock.Clock) bool {
	ran := make(chan struct{})
	go close(ran)
	g.yield(c)
	select {
	case <-ran:
		return true
	default:
		<-ran
		return false
	}
}

// Those whom the last batch's answers have woken come first where they are several, and not after a
// batch of one. Where that took long it is not done again for a while.
func TestWriterGathers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // else the other goroutine runs anyway
	c := clock.New()
	count := func(g gather) (ran int) {
		for range 20 {
			if try := g; try.runs(c) { // each by itself: one that takes long has the next not done
				ran++
			}
		}
		return ran
	}
	require.Less(t, count(gather{}), 15, "it goes on, but for what the scheduler does by itself")
	require.Greater(t, count(gather{several: true, not: c.Now()}), 15)
	g := gather{several: true}
	g.busy(c.Now(), time.Hour)
	require.Less(t, count(g), 15)
	require.InDelta(t, yieldShare*time.Hour, g.not.Sub(c.Now()), float64(time.Minute))
}

// A batch of several has the next one gathered, and one of a single caller does not.
func TestBatchOfSeveralIsFollowedByAGatheredOne(t *testing.T) {
	n, c := voting(t)
	c.say = func(words []string) string {
		if !isScript(words) {
			return asServer
		}
		return ":1\r\n"
	}
	for _, callers := range []int{1, 3, 1} {
		for i := range callers {
			require.NoError(t, n.Send(&Request{Call: callOf(wire.Observe, string(rune('a'+i))), Expires: never}))
		}
		n.send()
		require.Equal(t, callers > 1, n.gather.several)
	}
}
