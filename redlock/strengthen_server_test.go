package redlock_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Three replicas try each key at once, which leaves most winners on two of three servers. Long
// before the first extension would be due all have them, and one that comes back empty ends none.
func TestContendedLeasesOutliveARestart(t *testing.T) {
	t.Parallel()
	const keys = 60
	s := startAged(t, 3)
	var replicas []*redlock.Quorum
	for range 3 {
		replicas = append(replicas, s.gated(redlock.WithTTL(time.Minute)))
	}
	winners := make([]*redlock.Lease, keys)
	short := 0
	for k := range winners {
		for tries := 0; winners[k] == nil; tries++ {
			require.Less(t, tries, 20, "nobody gets the key")
			winners[k] = contendOnce(t, replicas, fmt.Sprint("key", k))
		}
		if s.having(winners[k]) < 3 {
			short++
		}
	}
	lacking := func(l *redlock.Lease) bool { return s.having(l) < 3 }
	require.Eventually(t, func() bool { return !slices.ContainsFunc(winners, lacking) }, 10*time.Second, 10*pollTick,
		"a lease stays on two of three servers")
	t.Logf("%d of %d began on fewer than three servers", short, keys)

	require.NoError(t, s.Node(1).Restart(false))
	for _, l := range winners {
		assert.NoError(t, l.Extend(t.Context()), "it was on one other server only")
	}
}

// contendOnce has all replicas try a key at the same moment, and returns the lease of the one that
// has it, if any.
func contendOnce(t *testing.T, replicas []*redlock.Quorum, key string) (winner *redlock.Lease) {
	t.Helper()
	leases := make([]*redlock.Lease, len(replicas))
	var work sync.WaitGroup
	for i, q := range replicas {
		work.Go(func() { leases[i], _ = q.TryAcquire(t.Context(), key) })
	}
	work.Wait()
	for _, l := range leases {
		if l != nil {
			require.Nil(t, winner, "two have the key")
			winner = l
		}
	}
	return winner
}

// having is how many servers have a lease's key.
func (s *servers) having(l *redlock.Lease) (n int) {
	s.t.Helper()
	for _, node := range s.Nodes() {
		there, err := node.Do(s.t, "EXISTS", lockKey(l.Key())).AsBool()
		require.NoError(s.t, err)
		if there {
			n++
		}
	}
	return n
}
