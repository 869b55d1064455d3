//go:build long

package redlock_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// TestMemoryOfKeys measures what keys cost a server, as it says itself, and compares it with the
// formulas of docs/operations.md: in bytes on each node, of a prefix and a key of k bytes together,
// and identities of i.
//
//	go test ./redlock -run TestMemoryOfKeys -v
func TestMemoryOfKeys(t *testing.T) {
	page, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	identity := strings.Repeat("i", 30) // about what the default is
	held := func(t *testing.T, q, _ *redlock.Quorum, key string) { take(t, q, key) }
	for _, use := range []struct {
		name    string
		entries int    // of the server, for each key
		besides int    // for all of them: the counters, and who uses the node
		text    string // of the formula, on the page
		formula func(k, i int) int
		use     func(t *testing.T, q, other *redlock.Quorum, key string)
	}{
		{"held", 1, 2, "290 + k + i", func(k, i int) int { return 290 + k + i }, held},
		{"held, one waits", 2, 2, "1400 + 2k + 2i", func(k, i int) int { return 1400 + 2*k + 2*i }, func(t *testing.T, q, other *redlock.Quorum, key string) {
			take(t, q, key)
			go other.Acquire(t.Context(), key) //nolint:errcheck // until the test ends
		}},
	} {
		t.Run(use.name, func(t *testing.T) {
			require.Contains(t, string(page), "| "+use.text)
			lengths := []int{10, 40, 80}
			if underRace {
				lengths = lengths[:1] // a server is no other under the race detector, and the client ten times as slow
			}
			for _, length := range lengths {
				s := startAged(t, 1)
				options := []redlock.Option{redlock.WithTTL(5 * time.Minute), redlock.WithNodeTimeout(time.Minute), redlock.WithIdentity(identity)}
				q, other := s.gated(options...), s.gated(options...)
				// Buffers and tables that are made once cost something too: what counts is the
				// difference.
				const first, last, workers = 2000, 6000, 50
				grow := func(from, to int) int {
					names := make(chan string)
					var wg sync.WaitGroup
					for range workers {
						wg.Go(func() {
							for name := range names {
								use.use(t, q, other, name)
							}
						})
					}
					for i := from; i < to; i++ {
						names <- fmt.Sprintf("%0*d", length, i)
					}
					close(names)
					wg.Wait()
					require.Eventually(t, func() bool {
						entries, err := s.Node(0).Do(t, "DBSIZE").AsInt64()
						return err == nil && entries == int64(to*use.entries+use.besides)
					}, 3*longTTL, pollTick)
					return s.memory()
				}
				before := grow(0, first)
				used, most := (grow(first, last)-before)/(last-first), use.formula(len(redlock.DefaultPrefix)+length, len(identity))
				t.Logf("key of %d bytes: %d bytes, by the formula %d", length, used, most)
				assert.LessOrEqual(t, used, most, "key of %d bytes", length)
				assert.Greater(t, used, most/3, "key of %d bytes: the formula says too much", length)
			}
		})
	}
}

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

// memory is what the keys of the first server take, in bytes, with their places in its tables. What
// it uses for connections and scripts comes and goes, and is left out.
func (s *servers) memory() int {
	s.t.Helper()
	stats, err := s.Node(0).Do(s.t, "MEMORY", "STATS").AsMap()
	require.NoError(s.t, err)
	dataset := stats["dataset.bytes"]
	sum, err := dataset.AsInt64()
	require.NoError(s.t, err)
	if database, ok := stats["db.0"]; ok { // not empty
		tables, err := database.AsIntMap()
		require.NoError(s.t, err)
		for _, table := range tables {
			sum += table
		}
	}
	return int(sum)
}
