//go:build long

package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Three replicas that ask for a key at once leave it on two of three nodes, mostly: the third one
// had the key of a rival for a moment. It gets the winner's soon, long before the first extension
// would be due.
func TestContendedLeaseIsSoonOnAllNodes(t *testing.T) {
	t.Parallel()
	for _, oneWay := range distances[:3] {
		t.Run(fmt.Sprint(oneWay), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				near := oneWay / 10
				rivals := []*redlock.Quorum{
					open(t, fleet, distant(fleet, near, near, oneWay)),
					open(t, fleet, distant(fleet, oneWay, near, near)),
					open(t, fleet, distant(fleet, near, oneWay, near)),
				}
				atOnce, soon := 0, 0
				for k := range 100 {
					key := fmt.Sprint("key", k)
					l := raceFor(t, key, rivals).requireOneWinner(t)
					time.Sleep(4 * oneWay) // until late answers are there
					atOnce += min(3-on(fleet, key), 1)
					time.Sleep(interval / 2)
					soon += min(3-on(fleet, key), 1)
					finish(t, l.Release)
					time.Sleep(time.Second)
				}
				require.GreaterOrEqual(t, atOnce, 10, "hardly any vote was contended, so this tests nothing")
				require.Zero(t, soon, "of %d leases that began on fewer nodes than all", atOnce)
			})
		})
	}
}
