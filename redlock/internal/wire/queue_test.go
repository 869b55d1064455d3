package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
