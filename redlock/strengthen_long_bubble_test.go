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

// A node on which another key stays is not asked without end: seven times more in the life of a
// lease, until the pause is as long as the interval.
func TestNodeThatRefusesForEverIsLeftAlone(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		extensions := func(hinder bool) int {
			tracer := &operations{}
			q := open(t, fleet, redlock.WithTracer(tracer), redlock.WithIdentity(fmt.Sprint(hinder)))
			if hinder {
				inTheWay(t, fleet, 2, time.Hour)
			}
			l := acquire(t, q)
			before := tracer.all.Load()
			time.Sleep(10 * ttl)
			require.NoError(t, l.Err())
			sent := tracer.all.Load() - before
			finish(t, l.Release)
			return int(sent)
		}
		usual := extensions(false)
		require.Positive(t, usual)
		require.LessOrEqual(t, extensions(true), usual+3*7+3)
	})
}
