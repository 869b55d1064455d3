//go:build long

package redlock_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Close does not wait longer for nodes that are far: what waits behind a batch without an answer is
// given up with it.
func TestCloseDoesNotWaitLongForFrozenFarNodes(t *testing.T) {
	bubbleFar(t, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		leases := make([]*redlock.Lease, 10000)
		var busy sync.WaitGroup
		for i := range leases {
			busy.Go(func() { leases[i], _ = q.TryAcquire(t.Context(), fmt.Sprint("key", i), redlock.WithoutAutoExtend()) })
		}
		busy.Wait()
		time.Sleep(time.Second)
		for _, n := range fleet.Nodes() {
			require.NoError(t, n.Freeze())
		}
		for _, l := range leases {
			if l != nil {
				busy.Go(func() { _ = l.Release(t.Context()) })
			}
		}
		synctest.Wait()
		began := time.Now()
		require.NoError(t, q.Close())
		const exchange = ttl / 5
		require.LessOrEqual(t, time.Since(began), 2*exchange+time.Second)
		busy.Wait()
	})
}
