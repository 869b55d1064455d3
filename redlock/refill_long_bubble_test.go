//go:build long

package redlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// The same with a holder who extends more than twice: a key that a restarted server took back
// without being counted would be found there, and counted, by the next extension. How soon the
// holder's client notices the restart is not the same each time, hence the repetitions.
func TestRefillOnARestartedNodeNeverCounts(t *testing.T) {
	for range 8 {
		require.False(t, refilled(t, func(a *redlock.Lease) {
			for range 8 {
				ctx, cancel := context.WithTimeout(context.Background(), 40*time.Millisecond)
				_ = a.Extend(ctx)
				cancel()
			}
		}), "two leases are live")
	}
}
