package redlock

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock/internal/board"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A text is an entry of this version within its bounds, which is read again from what is made of
// it, or it is none. One that is heard twice is told once, whatever it is.
func FuzzEntry(f *testing.F) {
	for _, seed := range []string{
		"1 1780000000000 1 - text", "1 1780000000000 3 paused {\"v\":1}", "2 1 1 - x", "1 0 0 - x", "1 1 1  x", "1 -1 1 - x", "1 1 -1 - x", "1 1 1 -", "1 1 1 - ", "",
		"1 9007199254740992 9007199254740992 c x", "1 99999999999999999999 1 - x", "1 01 1e3 - x", "1 1 1 " + strings.Repeat("c", 65) + " x",
		"1 1 1 - " + strings.Repeat("x", MaxEntryText+1), "1 1 1 - \xff\x00\r\n", "1 +1 +1 - x", "1\t1\t1\t-\tx",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var heard []Entry
		h := board.NewHearer(func(e wire.Entry) { heard = append(heard, newEntry("kind", e, 1)) })
		for i := range 2 {
			h.Heard(i, text)
		}
		w, ok := wire.ParseEntry(text)
		if !ok {
			require.Zero(t, w)
			require.Empty(t, heard)
			return
		}
		require.GreaterOrEqual(t, w.At, int64(0))
		require.Positive(t, w.Count)
		require.LessOrEqual(t, len(w.Class), 64)
		require.NotContains(t, w.Class, " ")
		require.LessOrEqual(t, len(w.Text), MaxEntryText)
		require.True(t, strings.HasSuffix(text, " "+w.Text))
		class := w.Class
		if class == "" {
			class = "-"
		}
		again, ok := wire.ParseEntry(fmt.Sprint("1 ", w.At, " ", w.Count, " ", class, " ", w.Text))
		require.True(t, ok)
		require.Equal(t, w, again)
		require.Len(t, heard, 1)
		require.Equal(t, w.Text, heard[0].Text)
		require.Positive(t, heard[0].Count)
	})
}

// Replies to who reads cards and journals are understood or refused, and what is not within its
// bounds is no card, and no entry. shape and values are those of FuzzReply.
func FuzzTold(f *testing.F) {
	for _, seed := range [][2]string{
		{"bbb", "1780000000000|id|1 1779999999000 text"}, {"bbbbb", "1780000000000|a||b|1 1780000000001 x"}, {"b", "1780000000000"}, {"bb", "1780000000000|id"},
		{"bbb", "x|id|1 1 x"}, {"bbb", "-1|id|1 1 x"}, {"bbb", "9007199254740992|id|1 0 x"}, {"bbb", "1780000000000|id|2 1 x"}, {"bbb", "1780000000000|id|1 -1 x"},
		{"bbb", "1|" + strings.Repeat("i", MaxCardID+1) + "|1 1 x"}, {"ibn", "1|id"}, {"bnb", "1||1 1 x"}, {"", ""}, {"n", ""}, {"e", "ERR x"}, {"i", "1"}, {"s", "OK"},
		{"bb", "1 1780000000000 1 - text|1 1780000000000 2 paused x"}, {"bi", "1 1 1 - x|1"}, {"b", "2 1 1 - x"}, {"be", "1 1 1 - x|ERR"}, {"bnb", "1 1 1 - x||1 2 1 - x"},
	} {
		f.Add(seed[0], seed[1])
	}
	server := startReplier(f)
	board := wire.NewBoard("p")
	f.Fuzz(func(t *testing.T, shape, values string) {
		if len(shape) > 250 || len(values) > 16384 {
			t.Skip()
		}
		result := server.ask(t, encode(shape, values))
		for _, call := range []*wire.Call{
			{Op: wire.Cards, Notice: board.ReadCards("kind", "", 10)}, {Op: wire.Journal, Notice: board.ReadJournal("kind", 10)}, {Op: wire.Post, Notice: &wire.Notice{}},
		} {
			rep := wire.Decode([]*wire.Call{call}, result, nil)[0]
			if rep.Err != nil {
				require.Zero(t, rep.Answer)
				require.False(t, wire.IsTimeout(rep.Err) || wire.IsBroken(rep.Err), "an answer, however odd, is no broken connection: %v", rep.Err)
				continue
			}
			require.Contains(t, []wire.Verdict{wire.OK, wire.Refused}, rep.Verdict)
			if call.Op == wire.Post {
				require.Nil(t, rep.More().Told)
				continue
			}
			require.NotNil(t, rep.More().Told)
			require.LessOrEqual(t, len(rep.More().Told.Cards), MaxCards)
			require.LessOrEqual(t, len(rep.More().Told.Entries), MaxEntries)
			for _, c := range rep.More().Told.Cards {
				require.LessOrEqual(t, len(c.ID), MaxCardID)
				require.LessOrEqual(t, len(c.Text), MaxCardText)
				require.True(t, c.Lifetime == 0 || c.Lifetime < 0 && c.Text == "")
				require.GreaterOrEqual(t, c.Age, time.Duration(0))
				require.LessOrEqual(t, c.Age, time.Duration(100*366*24)*time.Hour)
			}
			for _, e := range rep.More().Told.Entries {
				require.LessOrEqual(t, len(e.Text), MaxEntryText)
				require.Positive(t, e.Count)
			}
		}
	})
}
