//go:build long

package redlock_test

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Whatever commands carry together, tokens of a key rise: also those of keys that are paused and
// resumed meanwhile, where a counter is ahead of the clocks, and has to be counted on.
func TestTokensRiseBesidePauses(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL))
	lead := strconv.FormatInt(time.Now().Add(10*time.Minute).UnixMicro(), 10)
	for _, key := range []string{"x", "y"} {
		s.do([]string{"HSET", fences, slotOf(key), lead})
	}
	var done atomic.Bool
	var work sync.WaitGroup
	defer work.Wait()
	defer done.Store(true)
	for i := range 8 {
		work.Go(func() {
			for !done.Load() {
				_, _ = q.Resume(t.Context(), fmt.Sprint("paused ", i), redlock.PauseOptions{By: "Ann"})
			}
		})
		work.Go(func() {
			for !done.Load() {
				if l, err := q.TryAcquire(t.Context(), fmt.Sprint("other ", i)); err == nil {
					_ = l.Release(t.Context())
				}
			}
		})
	}
	last := make(map[string]uint64)
	for range 300 {
		for _, key := range []string{"x", "y"} {
			l := s.hold(q, key)
			require.Greater(t, l.FencingToken(), last[key], key)
			last[key] = l.FencingToken()
			require.NoError(t, l.Release(t.Context()))
		}
	}
	for i := range s.Nodes() {
		exists, err := s.Node(i).Do(t, "EXISTS", "tenure:pause:fences").AsInt64()
		require.NoError(t, err)
		require.Zero(t, exists)
	}
}
