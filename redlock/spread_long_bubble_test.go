//go:build long

package redlock_test

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// The first extensions of many leases bring their tokens to all nodes together.
func TestManyTokensAreSpreadTogether(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		const many = 100
		key := func(i int) string { return fmt.Sprint("key", i) }
		ahead := strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10)
		for i := range many {
			setCounter(t, fleet.Node(0), key(i), ahead)
			setCounter(t, fleet.Node(1), key(i), ahead)
		}
		q := open(t, fleet)
		fleet.Node(2).SetDelay(far)
		leases := make([]*redlock.Lease, many)
		var busy sync.WaitGroup
		for i := range leases {
			busy.Go(func() {
				var err error
				leases[i], err = q.TryAcquire(t.Context(), fmt.Sprint("key", i))
				assert.NoError(t, err)
			})
		}
		busy.Wait()
		require.False(t, t.Failed())
		fleet.Node(2).SetDelay(0)
		time.Sleep(2 * far)
		counter := func(node, i int) uint64 {
			text := counterOf(fleet.Node(node), key(i))
			n, err := strconv.ParseUint(text, 10, 64)
			require.NoError(t, err)
			return n
		}
		for i, l := range leases {
			require.Less(t, counter(2, i), l.FencingToken(), "there is nothing to learn, so this tests nothing")
		}
		before := commands(fleet, make([]int, 3))
		time.Sleep(ttl / 2)
		for i, l := range leases {
			for node := range fleet.Nodes() {
				require.Equal(t, l.FencingToken(), counter(node, i), "lease %d on node %d", i, node)
			}
		}
		for i, n := range commands(fleet, before) {
			require.Less(t, n, many/5, "on node %d", i)
		}
	})
}
