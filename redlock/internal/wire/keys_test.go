package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
