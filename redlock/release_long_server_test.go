//go:build long

package redlock_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Field: returning at quorum and releasing at once left 61 to 244 of 2,000 keys behind, most of
// them with several connections a node.
func TestTrap05ReleaseNeverOvertakesAcquire(t *testing.T) {
	const cycles, workers = 2000, 8
	s := startServers(t, 5)
	q := s.open(redlock.WithTTL(longTTL))
	var work sync.WaitGroup
	for w := range workers {
		work.Go(func() {
			for range cycles / workers {
				l, err := q.TryAcquire(t.Context(), fmt.Sprint("key", w))
				if !assert.NoError(t, err) || !assert.NoError(t, l.Release(t.Context())) {
					return
				}
			}
		})
	}
	work.Wait()
	s.requireFree(longTTL/4, "keys were left behind")
	for _, i := range s.all() {
		require.Equal(t, []string{fences}, s.Node(i).Keys(t), "the counters and nothing else")
	}
}
