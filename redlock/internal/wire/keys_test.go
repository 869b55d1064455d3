package wire

import (
	"strconv"
	"strings"
	"testing"
	"time"

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
	for value, identity := range map[string]string{
		"":                     "",
		"?":                    "?",
		"/":                    "/",
		"web-1":                "web-1",
		"web-1?x":              "web-1?x",
		"/" + random + "?x":    "/" + random + "?x",
		random + "?x":          random + "?x",
		"web-1/A?x":            "web-1/A?x",
		owner:                  "web-1",
		owner + "x":            owner + "x",
		owner + "x?y":          owner + "x?y",
		owner + "?a/b":         owner + "?a/b",
		owner + "/?x":          owner + "/?x",
		owner + "?":            "web-1",
		owner + "?%":           "web-1",
		owner + "?%zz":         "web-1",
		owner + "?%e9":         "web-1", // %E9 is how it is written
		owner + "?%41":         "web-1", // A is
		owner + "?a b":         "web-1",
		owner + "?a?b":         "web-1",
		owner + "?\x00":        "web-1",
		owner + "?a\n":         "web-1",
		owner + "?\x1b[2J":     "web-1",
		owner + "?\xff":        "web-1",
		owner + "?é":           "web-1",
		owner + "?x=1&y=2":     "web-1",
		owner + "?" + owner:    owner + "?web-1",
		owner + "?x/" + random: owner + "?x",
		owner + "?" + strings.Repeat("x", MaxPayloadLength+1):   "web-1",
		owner + "?" + strings.Repeat("%00", MaxPayloadLength+1): "web-1",
		owner + "?" + strings.Repeat("x", 1<<20):                "web-1",
		NewMember(1, NewProcess(), owner+"?x"):                  owner + "?x", // has its turn, and nothing more
	} {
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

func TestMessages(t *testing.T) {
	for text, want := range map[string]Message{
		"1 0 17 host/AAAAAAAAAAAAAAAAAAAAAA":         {0, 17, "host/AAAAAAAAAAAAAAAAAAAAAA"},
		"1 20 0000000000000017 1 0000000000000017 x": {20 * time.Millisecond, 17, "1 0000000000000017 x"},
		"1 0 17 ": {0, 17, ""},
		"1 3153600000000 18446744073709551615 a b": {MaxKeep, 1<<64 - 1, "a b"},
	} {
		got, ok := ParseMessage(text)
		require.True(t, ok, "%q", text)
		require.Equal(t, want, got, "%q", text)
	}
	for _, text := range []string{
		"", "1", "1 ", "1 0", "1 0 17", "1  17 x", "1 0  x", "1 -1 17 x", "1 +1 17 x", "1 0 -17 x", "1 0 18446744073709551616 x", "1 0x1 17 x", "1 1e3 17 x",
		"1 3153600000001 17 x", "1 99999999999999999999 17 x", "1\t0 17 x",
		"0 17 x", "2 0 17 x", "10 0 17 x", "01 0 17 x", " 1 0 17 x",
	} {
		got, ok := ParseMessage(text)
		require.False(t, ok, "%q", text)
		require.Zero(t, got, "%q", text)
	}
}

// A member of another version is none of this one.
func TestMemberBeginsWithItsVersion(t *testing.T) {
	member := NewMember(1_790_000_000_000_000, strings.Repeat("p", randomLength), "web 1")
	require.Equal(t, "1 1790000000000000 pppppppppppppppppppppp web 1", member)
	require.Equal(t, uint64(1_790_000_000_000_000), MemberNumber(member))
	require.Less(t, NewMember(9, "p", ""), NewMember(10, "p", ""), "in the order of their numbers")
	identity, ok := MemberIdentity(member)
	require.True(t, ok)
	require.Equal(t, "web 1", identity)
	for _, version := range []string{"", "0 ", "2 ", "11 ", "01 ", "1"} {
		_, ok = MemberIdentity(version + member[len(memberVersion):])
		require.False(t, ok, "%q", version)
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
