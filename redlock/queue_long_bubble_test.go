//go:build long

package redlock_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Who listens to a dead node tries again with growing pauses, and not at all while nobody waits.
func TestListenerLeavesADeadNodeAlone(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var dials atomic.Int64
		q := open(t, fleet, redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
			fleet.ClientOption(url, o)
			if url != fleet.Node(2).URL() {
				return
			}
			dial := o.DialCtxFn
			o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
				dials.Add(1)
				return dial(ctx, addr, d, c)
			}
		}))
		minute := func() int64 {
			before := dials.Load()
			time.Sleep(time.Minute)
			return dials.Load() - before
		}
		wait := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			_, err := q.Acquire(ctx, "key")
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		held := acquire(t, q)
		require.NoError(t, fleet.Node(2).Kill())
		time.Sleep(10 * time.Second)
		gate := minute() // the gate's own, and the extensions'
		require.Positive(t, gate)

		before := dials.Load()
		wait(time.Minute)
		require.Greater(t, dials.Load()-before, gate+60, "it does not try to listen, so this tests nothing")
		require.Less(t, dials.Load()-before, int64(1000), "at the shortest pause it would be 2,400 for the listener alone")
		time.Sleep(2 * ttl) // until the waiter's own releases are over
		require.Less(t, minute(), gate+gate/4, "nobody waits")

		require.NoError(t, fleet.Node(2).Restart(true))
		require.NoError(t, held.Release(t.Context()))
	})
}

// The queues hold 4096. Who has no place gets the key all the same, when it asks.
func TestQueueIsFull(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet))
		const fill = "for i = 1, 4095 do redis.call('ZADD', KEYS[1], i, i) end return redis.call('ZCARD', KEYS[1])"
		for i := range 3 {
			ask(t, fleet, i, "EVAL", fill, "1", queueKey)
		}
		last, none := waitFor(t, open(t, fleet)), waitFor(t, open(t, fleet))
		members := func() (all []int) {
			for i := range 3 {
				all = append(all, len(queue(t, fleet, i)))
			}
			return all
		}
		require.Equal(t, []int{4096, 4096, 4096}, members())
		last.cancel()
		require.ErrorIs(t, (<-last.granted).err, context.Canceled)
		synctest.Wait()
		require.Equal(t, []int{4095, 4095, 4095}, members(), "it had the last place")
		ask(t, fleet, 0, "ZADD", queueKey, "0", "0")
		ask(t, fleet, 1, "ZADD", queueKey, "0", "0")
		ask(t, fleet, 2, "ZADD", queueKey, "0", "0")
		time.Sleep(2 * ttl)
		require.Equal(t, []int{4096, 4096, 4096}, members())
		released := time.Now()
		require.NoError(t, l.Release(t.Context()))
		require.LessOrEqual(t, none.take(t).at.Sub(released), ttl+ttl/5)
	})
}
