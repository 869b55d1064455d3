package redlock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A lease is on two nodes, of which one does not answer. The two that do must not pass for a proof
// that nobody holds it.
func TestHolderBehindASilentNodeIsNotDenied(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		first, second := open(t, fleet), open(t, fleet)
		freeze(t, fleet, 2)
		held := acquire(t, first, redlock.WithoutAutoExtend())
		thaw(t, fleet, 2)
		synctest.Wait()
		fleet.Node(2).FlushAll()
		freeze(t, fleet, 1)
		_, err := second.Holder(t.Context(), "key")
		require.NoError(t, held.Err())
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.NotErrorIs(t, err, redlock.ErrNotHeld)
		require.Equal(t, "timeout", redlock.ErrorType(err))
		var qe *redlock.QuorumError
		require.ErrorAs(t, err, &qe)
		require.Equal(t, 1, qe.Succeeded, "one node names the holder")
		require.Len(t, qe.Errs, 1)

		start := time.Now()
		_, err = second.Holder(t.Context(), "other")
		require.ErrorIs(t, err, redlock.ErrNotHeld, "one silent node alone cannot hide a holder")
		require.Zero(t, time.Since(start), "nor is it waited for")
	})
}
