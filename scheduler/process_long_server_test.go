//go:build long

package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// Three processes with clocks that differ, on five servers: one is killed in the middle of it, and
// replaced, one is rolled, and a server comes back without its data. Every tick is run, once.
func TestEveryTickOnceOnServersWithKills(t *testing.T) {
	for _, mode := range []struct{ name, election string }{{"locker", ""}, {"leader", "jobs"}} {
		t.Run(mode.name, func(t *testing.T) {
			t.Parallel()
			fleet := valkeytest.Start(t, 5, valkeytest.WithAge(time.Hour))
			d := &diary{runs: make(map[int64]int)}
			skews := []time.Duration{-300 * time.Millisecond, 0, 300 * time.Millisecond}
			var replicas []*child.Replica
			for i, skew := range skews {
				replicas = append(replicas, startProcess(t, d, i, fleet.URLs(), skew, mode.election))
			}
			d.waitFor(t, 2)
			d.mu.Lock()
			victim := d.last
			d.mu.Unlock()
			// Between two runs: the ticks that a dead replica's lease of a run overlaps are another
			// matter.
			for _, n := range fleet.Nodes() {
				require.Eventually(t, func() bool {
					held, err := n.Do(t, "EXISTS", "tenure:{job/job}").AsBool()
					return err == nil && !held
				}, patience, 5*time.Millisecond, "the run does not end")
			}
			require.NoError(t, replicas[victim].Kill())
			d.waitFor(t, 1)
			require.NoError(t, fleet.Node(0).Restart(false))
			replicas[victim] = startProcess(t, d, victim, fleet.URLs(), skews[victim], mode.election)
			d.waitFor(t, 2)
			next := (victim + 1) % 3
			replicas[next].Stop()
			replicas[next] = startProcess(t, d, next, fleet.URLs(), skews[next], mode.election)
			d.waitFor(t, 3)
			for _, p := range replicas {
				p.Stop()
			}
			for tick := d.first; tick <= d.until; tick++ {
				require.Equal(t, 1, d.runs[tick], "runs of tick %d of %d to %d: %v", tick, d.first, d.until, d.runs)
			}
			require.Len(t, d.runs, int(d.until-d.first)+1)
		})
	}
}
