//go:build long

package scheduler_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// Three processes with clocks that differ, on five servers: one is killed in the middle of it, and
// replaced, one is rolled, and a server comes back without its data. Every tick is run, once.
func TestEveryTickOnceOnServersWithKills(t *testing.T) {
	for _, mode := range []struct{ name, election string }{{"whoever gets it", ""}, {"on the leader", "jobs"}} {
		t.Run(mode.name, func(t *testing.T) {
			fleet := valkeytest.Start(t, 5, valkeytest.WithAge(time.Hour))
			d := &diary{runs: make(map[int64]int)}
			skews := []time.Duration{-300 * time.Millisecond, 0, 300 * time.Millisecond}
			var replicas []*child.Replica
			for i, skew := range skews {
				replicas = append(replicas, startProcess(t, d, i, fleet.URLs(), skew, mode.election))
			}
			victim := d.waitFor(t, 2)
			// Between two runs: a run that is killed between its grant and its line is another
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
		})
	}
}

// diary is what processes ran.
type diary struct {
	mu           sync.Mutex
	runs         map[int64]int // guarded by mu; by tick
	last         int           // guarded by mu; who ran one last
	first, until int64         // guarded by mu
}

func (d *diary) add(who int, tick int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs[tick]++
	d.last, d.until = who, max(d.until, tick)
	if d.first == 0 {
		d.first = tick
	}
}

// waitFor waits until so many more ticks were run, and returns who ran one last.
func (d *diary) waitFor(t *testing.T, more int) (last int) {
	t.Helper()
	before := -1
	require.Eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		if last = d.last; before < 0 {
			before = len(d.runs)
		}
		return len(d.runs) >= before+more
	}, 3*patience, 10*time.Millisecond)
	return last
}

// startProcess starts a replica whose runs are written into the diary.
func startProcess(t *testing.T, d *diary, who int, urls []string, skew time.Duration, election string) *child.Replica {
	t.Helper()
	r, err := child.StartReplica(processVariable+"="+strings.Join(urls, ",")+" "+skew.String()+" "+election, func(line string) {
		var tick int64
		if _, err := fmt.Sscan(line, &tick); err == nil {
			d.add(who, tick)
		}
	})
	require.NoError(t, err)
	t.Cleanup(r.Stop)
	return r
}
