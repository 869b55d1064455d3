//go:build long

package redlock_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Two replicas, each near to another one of the two nodes that work, split every vote when they ask
// at once. One of them gets the key all the same, after two round trips, and the other one mostly
// knows after four.
func TestTwoRivalsAndANodeThatDoesNotVote(t *testing.T) {
	for _, oneWay := range distances {
		for what, befall := range trouble {
			t.Run(fmt.Sprintf("%v/%s", oneWay, what), func(t *testing.T) {
				bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
					near := oneWay / 10
					rivals := []*redlock.Quorum{
						open(t, fleet, distant(fleet, near, oneWay, oneWay), redlock.WithIdentity("a")),
						open(t, fleet, distant(fleet, oneWay, near, oneWay), redlock.WithIdentity("b")),
					}
					long, trips, timeout := 0, 8, time.Duration(0)
					switch what {
					case "quarantined":
						long, trips = 2, 2*trips // it is looked at in between
					case "silent":
						long, trips, timeout = 2, 2*trips, ttl/20 // the node's
					}
					if isNear(oneWay) {
						long = 2
					}
					meet(t, rivals)
					winners := make(map[string]int)
					var winner, other []time.Duration
					for k := range often(30) {
						befall(t, fleet.Node(2))
						time.Sleep(time.Second) // until both know
						r := raceFor(t, fmt.Sprint("key", k), rivals)
						l := r.requireOneWinner(t)
						winners[l.Identity()]++
						winner, other = append(winner, slices.Min(r.took)), append(other, slices.Max(r.took))
						finish(t, l.Release)
					}
					require.Len(t, winners, 2, "one of them is always first")
					requireShort(t, other, long, trips, 2*oneWay, timeout)
					if what == "dead" {
						slices.Sort(winner)
						require.LessOrEqual(t, winner[len(winner)/2], 5*oneWay, "two round trips, and a moment")
						require.LessOrEqual(t, other[len(other)/2], 8*oneWay, "four round trips")
					}
				})
			})
		}
	}
}

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
