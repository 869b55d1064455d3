package redlock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// requireAllTake has so many goroutines of each of some processes take the key at once. All get it,
// and few rounds are in vain: one with which the next in line finds the key held.
func requireAllTake(t *testing.T, processes, each int) {
	t.Helper()
	s := startServers(t, 3)
	var tracer rounds
	var work sync.WaitGroup
	var won atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // nothing is measured by it
	defer cancel()
	began := time.Now()
	for range processes {
		q := s.open(redlock.WithTTL(longTTL), redlock.WithNodeTimeout(2*time.Second), redlock.WithTracer(&tracer))
		for range each {
			work.Go(func() {
				l, err := q.Acquire(ctx, "key")
				if assert.NoError(t, err) {
					won.Add(1)
					assert.NoError(t, l.Release(ctx))
				}
			})
		}
	}
	work.Wait()
	require.EqualValues(t, processes*each, won.Load())
	require.LessOrEqual(t, tracer.all.Load(), 4*won.Load())
	t.Logf("%d hand-overs in %v, %d rounds", won.Load(), time.Since(began), tracer.all.Load())
}

func TestHundredsOfAProcessWantOneKey(t *testing.T) {
	t.Parallel()
	requireAllTake(t, 1, 500)
}

func TestHundredsOfSomeProcessesWantOneKey(t *testing.T) {
	t.Parallel()
	requireAllTake(t, 4, 100)
}
