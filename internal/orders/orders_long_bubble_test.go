//go:build long

package orders_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/orders"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A claim that a quorum of nodes has not taken is not the caller's: another one may have it.
func TestClaimNeedsAQuorum(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, "taker")
		require.NoError(t, orders.Claim(t.Context(), q, "before")) // scripts are known
		failed := 0
		for delay := range 40 {
			// Two nodes hang somewhere on the way.
			time.AfterFunc(time.Duration(delay)*time.Millisecond, func() {
				_, _ = fleet.Node(0).Freeze(), fleet.Node(1).Freeze()
			})
			for i := range 3 {
				fleet.Node(i).SetDelay(5 * time.Millisecond)
			}
			id := orders.NewID()
			err := orders.Claim(t.Context(), q, id)
			time.Sleep(time.Minute)
			_, _ = fleet.Node(0).Thaw(), fleet.Node(1).Thaw()
			time.Sleep(time.Minute)
			again := orders.Claim(t.Context(), q, id)
			if err == nil {
				require.ErrorIs(t, again, orders.ErrTaken, "after %d ms", delay)
				continue
			}
			failed++
		}
		require.Positive(t, failed)
		require.Less(t, failed, 40)
	})
}
