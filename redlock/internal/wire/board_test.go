package wire

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// An entry is read if it has all its parts, of this version, and no longer than any may be.
func TestParseEntry(t *testing.T) {
	for text, want := range map[string]Entry{
		"1 2 3 - a b":         {At: 2, Count: 3, Text: "a b"},
		"1 2 3 late ":         {At: 2, Count: 3, Class: "late"},
		"1 0 1 - \x00 \n1 2 ": {Count: 1, Text: "\x00 \n1 2 "},
		"1 2 3 " + strings.Repeat("c", maxClass) + " " + strings.Repeat("t", MaxEntry): {At: 2, Count: 3, Class: strings.Repeat("c", maxClass), Text: strings.Repeat("t", MaxEntry)},
	} {
		e, ok := ParseEntry(text)
		require.True(t, ok, "%q", text)
		require.Equal(t, want, e)
	}
	for _, text := range []string{
		"", "1", "1 2 3 -", "2 2 3 - a", "1 -2 3 - a", "1 2 0 - a", "1 2 x - a", "1 2 3  a", "1 9007199254740993 1 - a", "1  2 3 - a",
		"1 2 3 - " + strings.Repeat("t", MaxEntry+1), "1 2 3 " + strings.Repeat("c", maxClass+1) + " a",
	} {
		e, ok := ParseEntry(text)
		require.False(t, ok, "%.40q", text)
		require.Zero(t, e)
	}
}

// A release that makes an entry is a command of its own: the script of acquisitions and releases
// together makes none.
func TestReleaseWithAnEntryIsAlone(t *testing.T) {
	release := Call{Op: Release, Keys: &Keys{Lock: "k"}, Keep: "0"}
	require.True(t, release.isPaired())
	release.Last = &Last{Board: NewBoard("p"), Entry: Entry{Journal: "j", Count: 1, Most: 1, Keep: time.Hour}}
	require.False(t, release.isPaired())
}
