//go:build long

package redlock_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Two of five nodes have lost the holder's keys, so every attempt is granted by them. Those who
// wait ask no more often for that.
func TestWaitersOfAHeldKeyDoNotCallEachOther(t *testing.T) {
	const waiters, polls = 5, 6
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) }) // what is on its way arrives
		fleet := redlocktest.StartPipes(t, 5)
		long := redlock.WithMaxTTL(2 * polls * redlock.DefaultTTL)
		holder := opened(t, fleet, "holder", redlock.WithClientOption(fleet.ClientOption), long)
		lease, err := holder.Acquire(t.Context(), "key", redlock.WithTTL(2*polls*redlock.DefaultTTL), redlock.WithoutAutoExtend())
		require.NoError(t, err)
		synctest.Wait()
		for _, n := range fleet.Nodes()[:2] {
			n.FlushAll()
		}
		var attempts attemptCounter
		ctx, cancel := context.WithTimeout(t.Context(), polls*redlock.DefaultTTL)
		defer cancel()
		var work sync.WaitGroup
		for i := range waiters {
			q := opened(t, fleet, strconv.Itoa(i), redlock.WithClientOption(fleet.ClientOption), long, redlock.WithTracer(&attempts))
			work.Go(func() {
				_, err := q.Acquire(ctx, "key")
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		work.Wait()
		require.Less(t, attempts.n.Load(), int64(waiters*(polls+10)))
		require.NoError(t, lease.Release(t.Context()))
	})
}
