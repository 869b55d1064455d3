//go:build long

package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A node that was out of reach for a minute may have drifted by more than one that was looked at,
// but not by so much that a jump which lets a lease expire early passes for it.
func TestClockJumpAfterALongTimeOutOfReachIsNoticed(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		first := open(t, fleet)
		var link cable
		second := open(t, fleet, redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
			fleet.ClientOption(url, o)
			if url == fleet.Node(1).URL() {
				o.DialCtxFn = link.through(o.DialCtxFn)
			}
		}))
		time.Sleep(2 * quarantine)
		link.cut()
		time.Sleep(time.Minute)
		freeze(t, fleet, 2)
		held := acquire(t, first, redlock.WithoutAutoExtend())
		start := time.Now()
		time.Sleep(time.Second)
		thaw(t, fleet, 2)
		synctest.Wait()
		fleet.Node(2).FlushAll()
		fleet.Node(1).JumpClock(550 * time.Millisecond) // below one percent of a minute
		link.mend()
		time.Sleep(ttl - 450*time.Millisecond - time.Since(start))
		l, err := second.TryAcquire(t.Context(), "key")
		require.NoError(t, held.Err(), "the test was too slow")
		require.Nil(t, l, "two leases are live")
		require.Error(t, err)
		require.Equal(t, "clock_jumped", redlock.ErrorType(second.Nodes(t.Context())[1].Err))
	})
}
