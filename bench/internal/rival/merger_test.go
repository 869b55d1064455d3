package rival

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// A release is not sent before its own acquisition, and not after the next one of the same caller.
func TestMergerKeepsTheOrder(t *testing.T) {
	fleet := valkeytest.Start(t, 1)
	r, err := openMerger(Config{URLs: fleet.URLs(), TTL: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	w := r.(*batcher).writers[0]
	acquire := func(key string) *ballot {
		v := newBallot(key, false, 1)
		v.segments = make([]int, 1)
		return v
	}
	release := func(of *ballot) *ballot {
		v := newBallot(of.key, true, 1)
		v.acquired = of
		return v
	}
	held, other := acquire("held"), acquire("other")
	w.exchangeMerged([]*ballot{held, other})
	require.ElementsMatch(t, []string{"held", "other"}, fleet.Node(0).Keys(t))

	n := fleet.Node(0)
	n.ResetStats(t)
	first, second := acquire("k"), acquire("k")
	batch := []*ballot{first, release(held), release(first), second, release(other)}
	w.exchangeMerged(batch)
	require.Equal(t, []string{"k"}, n.Keys(t), "the second acquisition came after the release of the first")
	stats := n.CommandStats(t)
	require.Equal(t, []int64{2, 2}, []int64{stats["evalsha"], stats["set"]}, "a script for each of two segments")
	for i, v := range batch {
		require.Len(t, v.decided, 1, "%d was answered", i)
		require.NoError(t, <-v.decided)
	}
	w.exchangeMerged([]*ballot{release(second)})
	require.Empty(t, n.Keys(t))

	var many []*ballot
	for range mergeMost + 1 {
		many = append(many, release(second))
	}
	n.ResetStats(t)
	w.exchangeMerged(many)
	require.Equal(t, int64(2), n.CommandStats(t)["evalsha"], "a script has so many keys and no more")
	require.NoError(t, <-many[mergeMost].decided)
}
