//go:build long

package redlock_test

import (
	"testing"

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
