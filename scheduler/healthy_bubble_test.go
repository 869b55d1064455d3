package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// A replica is healthy while it is started and a quorum of nodes votes, whoever leads.
func TestHealthy(t *testing.T) {
	for name, opts := range map[string][]scheduler.Option{
		"every replica":    nil,
		"with an election": {scheduler.WithElection("jobs")},
	} {
		t.Run(name, func(t *testing.T) {
			inCluster(t, func(t *testing.T, c *cluster) {
				a, b := c.replica(opts...), c.replica(opts...)
				require.ErrorIs(t, a.Healthy(), scheduler.ErrNotRunning)
				require.Equal(t, "not_running", redlock.ErrorType(a.Healthy()))
				require.NotContains(t, a.Healthy().Error(), "context", "whose end changes nothing")
				a.Start()
				b.Start()
				until(5 * time.Second)
				require.NoError(t, a.Healthy())
				require.NoError(t, b.Healthy(), "it follows")
				require.NoError(t, a.StopJobs())
				require.ErrorIs(t, a.Healthy(), scheduler.ErrNotRunning)
				a.Start()
				until(10 * time.Second)
				require.NoError(t, a.Healthy())
				for i := range 3 {
					require.NoError(t, c.fleet.Node(i).Kill())
				}
				until(10*time.Second + 3*ttl)
				require.ErrorIs(t, a.Healthy(), redlock.ErrNoQuorum)
				require.ErrorIs(t, b.Healthy(), redlock.ErrNoQuorum)
				require.NoError(t, b.Shutdown())
				require.ErrorIs(t, b.Healthy(), scheduler.ErrNotRunning)
			})
		})
	}
}
