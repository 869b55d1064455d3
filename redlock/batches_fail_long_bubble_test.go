//go:build long

package redlock_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Close does not wait longer for nodes that are far: what waits behind a batch without an answer is
// given up with it.
func TestCloseDoesNotWaitLongForFrozenFarNodes(t *testing.T) {
	bubbleFar(t, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		leases := make([]*redlock.Lease, 10000)
		var busy sync.WaitGroup
		for i := range leases {
			busy.Go(func() { leases[i], _ = q.TryAcquire(t.Context(), fmt.Sprint("key", i), redlock.WithoutAutoExtend()) })
		}
		busy.Wait()
		time.Sleep(time.Second)
		for _, n := range fleet.Nodes() {
			require.NoError(t, n.Freeze())
		}
		for _, l := range leases {
			if l != nil {
				busy.Go(func() { _ = l.Release(t.Context()) })
			}
		}
		synctest.Wait()
		began := time.Now()
		require.NoError(t, q.Close())
		const exchange = ttl / 5
		require.LessOrEqual(t, time.Since(began), 2*exchange+time.Second)
		busy.Wait()
	})
}

// A clock that jumped closes the gate while acquisitions wait for the same node; they are refused,
// and nothing breaks.
func TestFarNodeWhoseClockJumps(t *testing.T) {
	bubbleFar(t, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		for i := range 400 {
			if i == 200 {
				fleet.Node(0).JumpClock(time.Minute)
			}
			go func() {
				if l, err := q.TryAcquire(t.Context(), fmt.Sprint("key", i)); assert.NoError(t, err) {
					assert.NoError(t, l.Release(t.Context()))
				}
			}()
			time.Sleep(3 * far / 2)
		}
		time.Sleep(time.Second)
		require.False(t, q.Nodes(t.Context())[0].Votes)
	})
}

// Connections that are dead without a word are given up when they have not answered, so that a
// lease is extended on new ones.
func TestFarNodesWithDeadConnections(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, far} {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				for _, n := range fleet.Nodes() {
					n.SetDelay(delay)
				}
				var conns holes
				q := open(t, fleet, conns.option(fleet), redlock.WithTTL(10*time.Second))
				for i := range 5 {
					timeOf(t, q, fmt.Sprint("first", i))
				}
				time.Sleep(time.Second)
				l := acquire(t, q)
				conns.cut()
				time.Sleep(time.Minute)
				require.NoError(t, l.Err())
				require.NoError(t, l.Release(t.Context()))
			})
		})
	}
}
