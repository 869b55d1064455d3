//go:build long

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// The first waiter of a Quorum starts what Close waits for.
func TestCloseWhileTheFirstWaiterComes(t *testing.T) {
	for range 50 {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			acquire(t, open(t, fleet))
			q := open(t, fleet)
			done := make(chan error)
			go func() {
				_, err := q.Acquire(t.Context(), "key")
				done <- err
			}()
			require.NoError(t, q.Close())
			require.ErrorIs(t, <-done, redlock.ErrClosed)
		})
	}
}

// A client that sends one batch at a time must not fill up with work for a node that is frozen.
func TestFrozenNodeDoesNotPileUp(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		freeze(t, fleet, 2)
		for range 200 {
			l := acquire(t, q)
			require.NoError(t, l.Release(t.Context()))
			time.Sleep(50 * time.Millisecond)
		}
		thaw(t, fleet, 2)
		time.Sleep(2 * ttl)
		_, held := fleet.Node(2).Get("tenure:{key}")
		require.False(t, held)
	})
}
