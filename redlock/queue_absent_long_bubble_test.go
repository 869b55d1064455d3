//go:build long

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Who waits asks once a TTL, and keeps the queue alive.
func TestQueueLivesWhileSomebodyWaits(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		acquire(t, open(t, fleet))
		w := waitFor(t, open(t, fleet))
		first := queue(t, fleet, 0)
		require.Len(t, first, 1)
		for range 40 {
			time.Sleep(ttl / 2)
			for i := range 3 {
				require.Equal(t, first, queue(t, fleet, i))
			}
		}
		w.cancel()
		<-w.granted
	})
}
