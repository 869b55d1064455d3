package board

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/bulletin"
)

// A text is an entry of this version within its bounds, which is read again from what is made of
// it, or it is none.
func FuzzEntry(f *testing.F) {
	for _, seed := range []string{
		"1 1780000000000 1 - text", "1 1780000000000 3 paused {\"v\":1}", "2 1 1 - x", "1 0 0 - x", "1 1 1  x", "1 -1 1 - x", "1 1 1 -", "1 1 1 - ", "",
		"1 9007199254740992 9007199254740992 c x", "1 01 1e3 - x", "1 1 1 " + strings.Repeat("c", 65) + " x", "1 1 1 - \xff\x00\r\n", "1 +1 +1 - x", "1\t1\t1\t-\tx",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, ok := parse("j", text)
		if !ok {
			require.Zero(t, e)
			return
		}
		require.Positive(t, e.Count)
		require.LessOrEqual(t, len(e.Class), bulletin.MaxClass)
		require.NotContains(t, e.Class, " ")
		require.LessOrEqual(t, len(e.Text), bulletin.MaxEntryText)
		again, ok := parse("j", fmt.Sprint("1 ", e.At.UnixMilli(), " ", e.Count, " ", cmp.Or(e.Class, noClass), " ", e.Text))
		require.True(t, ok)
		require.Equal(t, e, again)
	})
}

// What a node has of cards is some within their bounds.
func FuzzPage(f *testing.F) {
	for _, seed := range []string{
		"1780000000000|id\x001 1779999999000 1790000000000 text", "1|a\x00|b\x001 0 2 x", "1780000000000", "", "x|id\x001 1 2 x", "-1|id\x001 1 2 x", "9007199254740992|id\x001 0 1 x",
		"1|" + strings.Repeat("i", bulletin.MaxID+1) + "\x001 1 2 x",
	} {
		f.Add(seed, 3)
	}
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = max(most, 1)
		p := newPage("k", strings.Split(text, "|"), most)
		require.LessOrEqual(t, len(p.cards), most)
		for _, c := range p.cards {
			require.LessOrEqual(t, len(c.ID), bulletin.MaxID)
			require.LessOrEqual(t, len(c.Text), bulletin.MaxCardText)
			require.GreaterOrEqual(t, c.Age, time.Duration(0))
			require.LessOrEqual(t, c.Age, time.Duration(maxAge)*time.Millisecond)
		}
	})
}
