package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A waiter's place is by the clocks of most nodes, and not by its own.
func TestPlaceIsByTheNodesClocks(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		for i, ahead := range []time.Duration{2 * time.Hour, time.Hour, -time.Hour} {
			fleet.Node(i).JumpClock(ahead)
		}
		acquire(t, open(t, fleet))
		waitFor(t, open(t, fleet))
		time.Sleep(time.Second)
		members := queue(t, fleet, 0)
		require.Len(t, members, 1)
		place := time.UnixMicro(int64(wire.MemberNumber(members[0])))
		require.WithinDuration(t, time.Now().Add(time.Hour), place, 1100*time.Millisecond)
	})
}

// A node timeout of more than a second reserves the key all the same.
func TestReservationWithALongNodeTimeout(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		holder := open(t, fleet, redlock.WithTTL(20*time.Second), redlock.WithMaxTTL(time.Minute), redlock.WithNodeTimeout(2*time.Second))
		l := acquire(t, holder)
		freezeWaiter(t, fleet, "next")
		require.NoError(t, l.Release(t.Context()))
		_, err := holder.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrHeld, "who has just released goes before those who wait")
		time.Sleep(time.Second)
		acquire(t, holder)
	})
}
