//go:build long

package redlock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
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

// What is released while others are extended is free, and stays so.
func TestGroupWithReleases(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, far} {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				for _, n := range fleet.Nodes() {
					n.SetDelay(delay)
				}
				leases := grouped(t, open(t, fleet), 200)
				var busy sync.WaitGroup
				for _, l := range leases[:100] {
					busy.Go(func() { assert.NoError(t, l.Release(t.Context())) })
					time.Sleep(ttl / 50)
				}
				busy.Wait()
				time.Sleep(far)
				for range 4 {
					for i, l := range leases[:100] {
						for j, n := range fleet.Nodes() {
							_, held := n.Get(lockOf(l))
							require.False(t, held, "lease %d on node %d", i, j)
						}
					}
					time.Sleep(ttl / 4)
				}
				stay(t, leases[100:], fleet, 0, 1, 2)
			})
		})
	}
}

// Nodes that do not answer cost no lease while a quorum does, however they fail; and all of them
// when none is left, in time and with the reason.
func TestGroupWithNodesThatFail(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*redlocktest.Node) error{
		"killed": (*redlocktest.Node).Kill,
		"frozen": (*redlocktest.Node).Freeze,
		"slow":   func(n *redlocktest.Node) error { n.SetDelay(ttl); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				leases := grouped(t, open(t, fleet), 50)
				require.NoError(t, fail(fleet.Node(0)))
				stay(t, leases, fleet, 1, 2)
				require.NoError(t, fail(fleet.Node(1)))
				failed := time.Now()
				for i, l := range leases {
					<-l.Context().Done()
					require.ErrorIs(t, l.Err(), redlock.ErrLost)
					require.ErrorContains(t, l.Err(), "no quorum to extend", "%d", i)
				}
				require.LessOrEqual(t, time.Since(failed), ttl)
				require.Greater(t, time.Since(failed), ttl/2)
			})
		})
	}
}

// A key that is gone on a node that answers when a quorum has is put back too.
func TestGroupWithAKeyThatIsGoneOnASlowNode(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		leases := grouped(t, open(t, fleet), 50)
		fleet.Node(0).SetDelay(time.Millisecond)
		ask(t, fleet, 0, "DEL", lockOf(leases[3]))
		time.Sleep(ttl)
		stay(t, leases, fleet, 0, 1, 2)
	})
}
