//go:build long

package redlock_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A far node that freezes costs no more than a near one: what waits for it ends with its time, and
// afterwards it works again.
func TestFarNodeFreezes(t *testing.T) {
	bubbleFar(t, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		require.NoError(t, fleet.Node(0).Freeze())
		var busy sync.WaitGroup
		for i := range 50 {
			busy.Go(func() {
				for j := range 20 {
					l, err := q.TryAcquire(t.Context(), fmt.Sprint("key", i, "-", j))
					if !assert.NoError(t, err) {
						return
					}
					assert.NoError(t, l.Release(t.Context()))
				}
			})
			time.Sleep(time.Millisecond)
		}
		busy.Wait()
		time.Sleep(ttl)
		require.NoError(t, fleet.Node(0).Thaw())
		time.Sleep(2 * ttl)
		for i, n := range fleet.Nodes() {
			for _, key := range n.Keys() {
				if !strings.Contains(key, "{first") && key != "tenure:roster" {
					require.Equal(t, "tenure:fences", key, "node %d", i)
				}
			}
		}
		for range 3 {
			l, err := q.TryAcquire(t.Context(), "again")
			require.NoError(t, err)
			time.Sleep(2 * far)
			for i, n := range fleet.Nodes() {
				_, held := n.Get(lockOf(l))
				require.True(t, held, "node %d", i)
			}
			require.NoError(t, l.Release(t.Context()))
			time.Sleep(2 * far)
		}
	})
}
