package wire

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A group ends before the first key that it has, and before the first acquisition of a key whose
// counter it raises already, however often the buffers were used before.
func TestGroupEndsBeforeAKeyThatItHas(t *testing.T) {
	var b Buffers
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, MaxGroup).Draw(t, "calls")
		different := rapid.SampledFrom([]int{2, 20, 2000, 1 << 20}).Draw(t, "of so many keys")
		byHand := rapid.Bool().Draw(t, "made by hand")
		var calls []*Call
		want, seen, raised := 0, make(map[int]bool), make(map[uint32]bool)
		for i := range n {
			key := rapid.IntRange(0, different-1).Draw(t, "key")
			k := NewKeys("p", strconv.Itoa(key))
			if byHand {
				k.slot = 0
			}
			c := &Call{Op: Acquire, Keys: &k, TTL: "1"}
			if rapid.Bool().Draw(t, "release") {
				c = &Call{Op: Release, Keys: &k, Keep: "0"}
			}
			calls = append(calls, c)
			if !seen[key] && !(c.Op == Acquire && raised[k.slot]) && want == i {
				want = i + 1
			}
			seen[key] = true
			raised[k.slot] = raised[k.slot] || c.Op == Acquire
		}
		if want == 0 {
			want = 1
		}
		require.Equal(t, want, b.Group(calls))
	})
}
