package redlock_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

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
