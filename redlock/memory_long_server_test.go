//go:build long

package redlock_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// A Quorum costs a process little, and so does the first that waits, for which it makes a further
// connection to each node: docs/operations.md has how much.
func TestMemoryOfQuorums(t *testing.T) {
	page, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "less than a MiB")
	const quorums = 10
	s := startServers(t, 5)
	holder := s.hold(s.open(redlock.WithTTL(longTTL)), "key")
	heap := func() uint64 {
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	qs := make([]*redlock.Quorum, quorums)
	for i := range qs {
		qs[i] = s.open(redlock.WithTTL(longTTL))
		require.NoError(t, s.hold(qs[i], fmt.Sprint("own ", i)).Release(t.Context()))
	}
	used := heap()
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for _, q := range qs {
		waiting.Go(func() {
			_, err := q.Acquire(ctx, "key")
			assert.ErrorIs(t, err, context.Canceled)
		})
	}
	for i := range s.Nodes() {
		require.Eventually(t, func() bool { return s.waiting(i, "key") == quorums }, longTTL, pollTick)
	}
	waited := heap()
	cancel()
	waiting.Wait()
	require.NoError(t, holder.Release(t.Context()))
	t.Logf("a Quorum of 5 nodes: %d KiB, and its first waiter: %d KiB", (used-before)/quorums/1024, (waited-used)/quorums/1024)
	if !underRace {
		require.Less(t, used-before, uint64(quorums<<20))
		require.Less(t, waited-used, uint64(quorums<<20))
	}
}

// take acquires a key, or fails the test and returns nil.
func take(t *testing.T, q *redlock.Quorum, key string, opts ...redlock.LeaseOption) *redlock.Lease {
	t.Helper()
	lease, err := tryUntilAnswered(t, q, key, append(opts, redlock.WithoutAutoExtend())...)
	assert.NoError(t, err)
	return lease
}
