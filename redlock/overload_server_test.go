package redlock_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Field: one connection to a frozen node, 500 goroutines with contexts of 50 ms: calls came back
// after up to 11.9 s, and the cancelled SETs ran on resume with a full TTL.
func TestTrap20FrozenNodesDoNotOutliveTheContext(t *testing.T) {
	const callers, rounds, patience = 500, 3, 50 * time.Millisecond
	for _, test := range []struct {
		name   string
		frozen []int
	}{
		{"a minority", []int{2}},
		{"a quorum", []int{1, 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := startServers(t, 3)
			q := s.open(redlock.WithTTL(longTTL))
			s.freeze(test.frozen...)
			before := runtime.NumGoroutine()
			var calls sync.WaitGroup
			for range rounds {
				for i := range callers {
					calls.Go(func() {
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						defer cancel()
						start := time.Now()
						l, err := q.TryAcquire(ctx, fmt.Sprint("key", i))
						assert.Less(t, time.Since(start), patience+2*lateness)
						if err != nil {
							assert.ErrorIs(t, err, context.DeadlineExceeded)
						} else if assert.Len(t, test.frozen, 1, "granted without a quorum") {
							assert.NoError(t, l.Release(ctx))
						}
					})
				}
				calls.Wait()
			}
			require.Eventually(t, func() bool { return runtime.NumGoroutine() < before+callers/10 }, serverTTL/2, pollTick,
				"calls that returned left goroutines behind: %d, then %d", before, runtime.NumGoroutine())
			s.thaw(test.frozen...)
			s.requireFree(longTTL/2, "abandoned requests were carried out and not undone")
			for _, i := range test.frozen {
				require.Eventually(t, func() bool { return q.Nodes(t.Context())[i].Reachable }, longTTL, pollTick)
			}
			s.requireFree(longTTL/4, "abandoned requests were carried out late")
			_, err := q.TryAcquire(t.Context(), "key0")
			require.NoError(t, err)
		})
	}
}
