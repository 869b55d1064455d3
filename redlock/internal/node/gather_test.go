package node

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

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
