package redlock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Anybody who may publish can say anything. A message is of this version and within its bounds, or
// it is none.
func FuzzMessage(f *testing.F) {
	for _, seed := range []string{
		"1 0 1790000000000000 host/AAAAAAAAAAAAAAAAAAAAAA", "1 86400000 1 1 0000000000000001 AAAAAAAAAAAAAAAAAAAAAA me", "2 0 1 x", "0 1 x", "",
		"1 9223372036854775807 18446744073709551615 x", "1 -1 1 x", "1 +1 +1 x", "1 0 1", "1  1 x", "1 0 1 \x00\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, ok := wire.ParseMessage(text)
		if !ok {
			require.Zero(t, m)
			return
		}
		require.True(t, strings.HasPrefix(text, "1 "))
		require.True(t, strings.HasSuffix(text, " "+m.Release))
		require.GreaterOrEqual(t, m.After, time.Duration(0))
		require.LessOrEqual(t, m.After, MaxKeep)
		again, ok := wire.ParseMessage(fmt.Sprint("1 ", m.After.Milliseconds(), " ", m.Number, " ", m.Release))
		require.True(t, ok)
		require.Equal(t, m, again)
	})
}

// A name comes back out of every member that it went into, and no text of another version is a
// member.
func FuzzMember(f *testing.F) {
	process := wire.NewProcess()
	for _, seed := range []string{"me", "", "1 2 3", "host 1/a b", "1 0000000000000001 " + process + " me", "2 0000000000000001 " + process + " me", "\x00"} {
		f.Add(seed, uint64(17))
	}
	f.Fuzz(func(t *testing.T, text string, number uint64) {
		member := wire.NewMember(number, process, text)
		identity, ok := wire.MemberIdentity(member)
		require.True(t, ok)
		require.Equal(t, text, identity)
		require.Equal(t, number, wire.MemberNumber(member))
		_, ok = wire.MemberIdentity("2" + member[1:])
		require.False(t, ok)
		if identity, ok = wire.MemberIdentity(text); ok {
			require.True(t, strings.HasPrefix(text, "1 "))
			require.True(t, strings.HasSuffix(text, " "+identity))
		}
	})
}
