//go:build long

package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// The extender does not wait until each is due: eight times in an interval is enough for any number
// of leases.
func TestManyLeasesAreExtendedTogether(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		const many, times = 500, 10
		q := open(t, fleet)
		var leases []*redlock.Lease
		for i := range many {
			l, err := q.TryAcquire(t.Context(), fmt.Sprint("key", i))
			require.NoError(t, err)
			leases = append(leases, l)
		}
		time.Sleep(2 * ttl) // beyond the first extensions, which spread the tokens
		before := commands(fleet, make([]int, 3))
		time.Sleep(times * ttl)
		for i, n := range commands(fleet, before) {
			require.Less(t, n, many*times/2, "each is extended two times in a TTL at least, on node %d", i)
		}
		for _, l := range leases {
			require.NoError(t, l.Err())
		}
	})
}
