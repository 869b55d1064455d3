package wire

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// everyByte has each byte four times: with it a payload is as long as it may be.
var everyByte = func() string {
	var b strings.Builder
	for i := range MaxPayloadLength {
		b.WriteByte(byte(i))
	}
	return b.String()
}()

// A text that no attempt has written has no payload. Its identity is that of an owner value with
// another payload than is known here, and else all of it.
func TestPayloadOfAnotherProgram(t *testing.T) {
	random := strings.Repeat("A", 22)
	owner := "web-1/" + random
	values := map[string]string{ // identities
		owner: "web-1", owner + "?" + owner: owner + "?web-1", owner + "?x/" + random: owner + "?x",
		NewMember(1, NewProcess(), owner+"?x"): owner + "?x", // has its turn, and nothing more
	}
	for _, all := range []string{
		"", "?", "/", "web-1", "web-1?x", "/" + random + "?x", random + "?x", "web-1/A?x", owner + "x", owner + "x?y", owner + "?a/b", owner + "/?x",
	} {
		values[all] = all
	}
	for _, payload := range []string{ // %E9 is how %e9 is written, and A how %41 is
		"", "%", "%zz", "%e9", "%41", "a b", "a?b", "\x00", "a\n", "\x1b[2J", "\xff", "é", "x=1&y=2",
		strings.Repeat("x", MaxPayloadLength+1), strings.Repeat("%00", MaxPayloadLength+1), strings.Repeat("x", 1<<20),
	} {
		values[owner+"?"+payload] = "web-1"
	}
	for value, identity := range values {
		require.Equal(t, identity, OwnerIdentity(value), "%.100q", value)
		require.Empty(t, OwnerPayload(value), "%.100q", value)
		require.LessOrEqual(t, len(OwnerRandom(value)), randomLength, "%.100q", value)
	}
	require.Equal(t, "x", OwnerPayload(owner+"?x"))
	require.Equal(t, everyByte, OwnerPayload(NewOwner("web-1", everyByte)))
	require.Empty(t, OwnerPayload(NewOwner("web-1", everyByte+"x")), "longer than any that is written")
}

// No name of a prefix is one of another prefix, whatever it is: what another package keeps under it
// has braces, too.
func TestPrefixesShareNoNames(t *testing.T) {
	seen := make(map[string]string)
	for _, prefix := range []string{"a", "b", "a:", "a/b", "a:fences", "a:roster", "a:fences:fences", "a:cards", "a:journal:k/x", "fences"} {
		key := NewKeys(prefix, "key")
		for _, name := range []string{key.Fences, key.Lock, key.Wait(), RosterKeys(prefix).Lock, prefix + ":{}:cards:k", prefix + ":{}:journal:k/{key}"} {
			require.Empty(t, seen[name], name)
			seen[name] = prefix
		}
	}
}

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
