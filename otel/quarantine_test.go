package tenureotel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A node that was restarted is in quarantine for as long as leases may last that it forgot; one that is merely dead is not.
func TestQuarantinedNodeShowsUntilItVotesAgain(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet, redlock.WithTracer(tel), redlock.WithMaxTTL(10*time.Minute)) // a quarantine of ten minutes
		state := func() (all []float64) {
			for _, node := range []string{"node-1.pipe", "node-2.pipe", "node-3.pipe", "node-4.pipe", "node-5.pipe"} {
				all = append(all, tel.value(t, "tenure.node.quarantined", "server.address", node, "server.port", "6379"))
			}
			return all
		}
		require.Equal(t, []float64{0, 0, 0, 0, 0}, state(), "all nodes are there from the beginning")
		require.NoError(t, fleet.Node(1).Restart(false))
		require.NoError(t, fleet.Node(3).Kill())
		pass(2 * ttl)
		require.Equal(t, []float64{0, 1, 0, 0, 0}, state())
		pass(11 * time.Minute)
		require.Equal(t, []float64{0, 0, 0, 0, 0}, state())
		require.NoError(t, fleet.Node(1).Restart(false))
		pass(2 * ttl)
		require.Equal(t, []float64{0, 1, 0, 0, 0}, state())
		require.NoError(t, q.Close())
		require.Equal(t, []float64{0, 0, 0, 0, 0}, state(), "nobody asks any more")
	})
}
