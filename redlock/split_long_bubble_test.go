//go:build long

package redlock_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Rivals that are each at other distances from each node, from a tenth of a millisecond to 25: in
// each race somebody has the key in the end.
func TestRivalsAtAnyDistance(t *testing.T) {
	for _, test := range []struct{ nodes, dead, rivals int }{{3, 1, 2}, {3, 1, 4}, {5, 2, 3}, {5, 2, 8}} {
		t.Run(fmt.Sprintf("%d of %d dead, %d rivals", test.dead, test.nodes, test.rivals), func(t *testing.T) {
			for seed := range uint64(3) {
				alone(t, test.nodes, func(t *testing.T, fleet *redlocktest.Fleet) {
					random := rand.New(rand.NewPCG(seed, 1))
					var rivals []*redlock.Quorum
					for range test.rivals {
						far := make([]time.Duration, test.nodes)
						for i := range far {
							far[i] = time.Duration((1 + random.Float64()) * float64(100*time.Microsecond<<random.IntN(8)))
						}
						rivals = append(rivals, open(t, fleet, distant(fleet, far...)))
					}
					for i := range test.dead {
						require.NoError(t, fleet.Node(i).Kill())
					}
					for k := range often(20) {
						time.Sleep(time.Second)
						r := raceFor(t, fmt.Sprint("key", k), rivals)
						won := 0
						for _, l := range r.leases {
							if l != nil {
								won++
								finish(t, l.Release)
							}
						}
						require.Equal(t, 1, won, "%v", r.errs)
					}
				})
			}
		})
	}
}
