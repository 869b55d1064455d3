//go:build long

package runtest

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Ten hosts run each tick at once, while nodes are killed, frozen and cut: one run a tick, and all
// exit codes are 0.
func TestOneRunATick(t *testing.T) {
	ticks := 12
	if text := os.Getenv(ticksVariable); text != "" {
		var err error
		ticks, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	const fleets = 3 // a frozen node costs time, and no work
	var tallies [fleets]*tally
	t.Run("ticks", func(t *testing.T) {
		for i := range tallies {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				tallies[i] = runTicks(t, (ticks+i)/fleets)
			})
		}
	})
	sum := tally{codes: map[int]int{}, faults: map[int]int{}}
	for _, one := range tallies {
		require.NotNil(t, one)
		sum.ticks, sum.runs, sum.longest = sum.ticks+one.ticks, sum.runs+one.runs, max(sum.longest, one.longest)
		for code, n := range one.codes {
			sum.codes[code] += n
		}
		for i, n := range one.faults {
			sum.faults[i] += n
			sum.took[i] += one.took[i]
		}
	}
	require.Equal(t, ticks, sum.runs, "one run a tick")
	t.Logf("%d ticks, %d processes: %d runs; exit codes %v; the slowest tick took %v", sum.ticks, sum.ticks*hosts, sum.runs, sum.codes, sum.longest.Round(time.Millisecond))
	for i, n := range sum.faults {
		t.Logf("with a node %s: %d ticks, of %v each", quorumFaults[i].name, n, (sum.took[i] / time.Duration(n)).Round(time.Millisecond))
	}
}
