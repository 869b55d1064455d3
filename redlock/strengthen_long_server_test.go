//go:build long

package redlock_test

import (
	"fmt"
	"slices"
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
		replicas = append(replicas, s.gated(redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(longTTL)))
	}
	winners := make([]*redlock.Lease, keys)
	for k := range winners {
		for tries := 0; winners[k] == nil; tries++ {
			require.Less(t, tries, 1000, "nobody gets the key")
			winners[k] = contendOnce(t, replicas, fmt.Sprint("key", k))
		}
	}
	lacking := func(l *redlock.Lease) bool { return s.having(l) < 3 }
	require.Eventually(t, func() bool { return !slices.ContainsFunc(winners, lacking) }, patience, 10*pollTick,
		"a lease stays on two of three servers")

	require.NoError(t, s.Node(1).Restart(false))
	for _, l := range winners {
		assert.NoError(t, l.Extend(t.Context()), "it was on one other server only")
	}
}
