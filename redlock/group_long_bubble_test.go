//go:build long

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A node that was emptied and does not vote gets no key back, and the others go on; one that votes
// again has them all soon.
func TestGroupWithANodeThatWasRestarted(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		leases := grouped(t, open(t, fleet), 50)
		require.NoError(t, fleet.Node(0).Restart(false))
		stay(t, leases, fleet, 1, 2)
		time.Sleep(time.Minute)
		stay(t, leases, fleet, 0, 1, 2)
	})
}
