package redlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// What TestRefillOnARestartedNodeDoesNotCount shows, with a holder who extends more than twice: a key that a restarted
// server took back without being counted would be found there, and counted, by the next extension. How soon the holder's
// client notices the restart is not the same each time, hence the repetitions.
func TestRefillOnARestartedNodeNeverCounts(t *testing.T) {
	for range 8 {
		bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			opts := []redlock.Option{redlock.WithNodeTimeout(time.Second)}
			var link cable // from A to node 1
			qa := open(t, fleet, append(opts, redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
				fleet.ClientOption(url, o)
				if url == fleet.Node(1).URL() {
					o.DialCtxFn = link.through(o.DialCtxFn)
				}
			}))...)
			qb := open(t, fleet, opts...)
			require.NoError(t, fleet.Node(2).Kill())
			a := acquire(t, qa, redlock.WithoutAutoExtend())
			require.NoError(t, fleet.Node(2).Restart(false))
			time.Sleep(2 * quarantine)
			a = reacquire(t, qa, a, fleet)

			start := time.Now()
			at := func(d time.Duration) { time.Sleep(d - time.Since(start)) }
			at(3450 * time.Millisecond)
			freeze(t, fleet, 1)
			link.cut()
			at(3500 * time.Millisecond)
			granted := make(chan *redlock.Lease, 1)
			go func() {
				l, _ := qb.TryAcquire(t.Context(), "key")
				granted <- l
			}()
			synctest.Wait()
			_, voted := fleet.Node(2).Get("tenure:{key}")
			require.True(t, voted, "the server has not voted for B, so this tests nothing")
			restart(t, fleet, 2)
			extended := make(chan struct{})
			go func() {
				defer close(extended)
				for range 8 {
					ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
					_ = a.Extend(ctx)
					cancel()
				}
			}()
			at(ttl + 50*time.Millisecond) // A's key on node 1 has expired
			thaw(t, fleet, 1)
			b := <-granted
			<-extended
			require.False(t, b != nil && b.Err() == nil && a.Err() == nil, "two leases are live")
		})
	}
}
