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

// acquireMany acquires key0, key1 and so on, which are extended when the test says so. Their tokens
// have been spread, so the next extension changes nothing but the expiry.
func acquireMany(t *testing.T, q *redlock.Quorum, n int) []*redlock.Lease {
	t.Helper()
	leases := make([]*redlock.Lease, n)
	for i := range leases {
		l, err := q.TryAcquire(t.Context(), fmt.Sprint("key", i), redlock.WithoutAutoExtend())
		require.NoError(t, err)
		require.NoError(t, l.Extend(t.Context()))
		leases[i] = l
	}
	synctest.Wait()
	return leases
}

// together has all that f asks the nodes for reach each of them in one batch: they are busy when it
// asks.
func together(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum, f func()) {
	t.Helper()
	for _, n := range fleet.Nodes() {
		n.SetDelay(turn / 4)
	}
	var asked sync.WaitGroup
	asked.Go(func() {
		_, err := q.Holder(t.Context(), "other")
		assert.Error(t, err, "nobody holds it, or that is not known")
	})
	time.Sleep(time.Millisecond)
	for _, n := range fleet.Nodes() {
		n.SetDelay(0) // but for that answer
	}
	f()
	asked.Wait()
	synctest.Wait()
}

// extendAll starts extensions of the leases and returns a channel with what each came to.
func extendAll(t *testing.T, leases []*redlock.Lease) []chan error {
	t.Helper()
	results := make([]chan error, len(leases))
	for i, l := range leases {
		results[i] = make(chan error, 1)
		go func() { results[i] <- l.Extend(t.Context()) }()
	}
	synctest.Wait()
	return results
}

func lockOf(l *redlock.Lease) string { return "tenure:{" + l.Key() + "}" }

// commands returns how many commands each node has run since the last time.
func commands(fleet *redlocktest.Fleet, before []int) (since []int) {
	for i, n := range fleet.Nodes() {
		since = append(since, n.Commands()-before[i])
	}
	return since
}

// A release among the extensions is for its own lease, which no extension sets again.
func TestExtensionsWithARelease(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		leases := acquireMany(t, q, 10)
		time.Sleep(ttl / 4)
		const released = 4
		together(t, fleet, q, func() {
			results := extendAll(t, leases)
			go func() { assert.NoError(t, leases[released].Release(t.Context())) }()
			synctest.Wait()
			more := extendAll(t, leases)
			require.ErrorIs(t, <-more[released], redlock.ErrReleased)
			require.ErrorIs(t, <-results[released], redlock.ErrReleased)
			for i := range leases {
				if i != released {
					require.NoError(t, <-results[i])
					require.NoError(t, <-more[i])
				}
			}
		})
		for i, l := range leases {
			for j, n := range fleet.Nodes() {
				_, held := n.Get(lockOf(l))
				require.Equal(t, i != released, held, "lease %d on node %d", i, j)
			}
		}
	})
}

// A lease that lives for long is extended often, and nodes fail for a while. They are not left in
// peace for as long as that lease could bear: others, older and newer ones, are extended as ever.
func TestLongLeaseKeepsNoNodeFromOthers(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, redlock.WithMaxTTL(time.Hour))
		long, err := q.TryAcquire(t.Context(), "long", redlock.WithTTL(time.Hour), redlock.WithExtendInterval(time.Second))
		require.NoError(t, err)
		short := acquire(t, q)
		for range 5 {
			time.Sleep(3 * ttl)
			freeze(t, fleet, 0, 1, 2)
			time.Sleep(ttl / 2)
			thaw(t, fleet, 0, 1, 2)
			time.Sleep(3 * ttl)
			require.NoError(t, short.Err())
		}
		require.NoError(t, short.Release(t.Context()))
		freeze(t, fleet, 0, 1, 2)
		time.Sleep(5 * ttl)
		thaw(t, fleet, 0, 1, 2)
		time.Sleep(ttl)
		short = acquire(t, q)
		time.Sleep(3 * ttl)
		require.NoError(t, short.Err())
		require.NoError(t, long.Err())
	})
}
