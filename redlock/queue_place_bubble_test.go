package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

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
