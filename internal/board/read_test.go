package board

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/internal/bulletin"
)

// A card is read if it is one, within its bounds, and has not expired. A page goes on behind
// whatever it has.
func TestPagesOfANode(t *testing.T) {
	long := strings.Repeat("x", bulletin.MaxCardText)
	for text, want := range map[string]string{
		"id\x001 5 11 text": "text", "id\x001 5 11 ": "", "id\x001 5 11 " + long: long, "id\x001 5 11 a\x00b c": "a\x00b c", "id\x001 30 40 x": "x",
	} {
		p := newPage("k", []string{"10", text}, 1)
		require.Equal(t, "id", p.last)
		require.Len(t, p.cards, 1, "%.20q", text)
		require.Equal(t, bulletin.Card{Kind: "k", ID: "id", Text: want, Age: p.cards[0].Age}, p.cards[0])
		require.Contains(t, []time.Duration{0, 5 * time.Millisecond}, p.cards[0].Age)
		require.Empty(t, newPage("k", []string{"10", text}, 2).last, "the page is not full")
	}
	for _, text := range []string{
		"id\x001 5 10 expired", "id\x002 5 11 text", "id\x001 x 11 text", "id\x001 5 11", "id\x00", "id", "id\x001 -5 11 text", "id\x001 5 9007199254740992 text",
		"id\x001 5 11 " + long + "x", strings.Repeat("i", bulletin.MaxID+1) + "\x001 5 11 text",
	} {
		p := newPage("k", []string{"10", text}, 1)
		require.Empty(t, p.cards, "%.20q", text)
		require.NotEmpty(t, p.last)
	}
	require.Zero(t, newPage("k", nil, 1))
	require.Len(t, newPage("k", []string{"1", "a\x001 0 2 x", "b\x001 0 2 x"}, 1).cards, 1, "more than was asked for")
}

// Of what nodes have of a card the youngest counts.
func TestYoungestCardCounts(t *testing.T) {
	old, young := bulletin.Card{ID: "a", Text: "old", Age: 2}, bulletin.Card{ID: "a", Text: "new", Age: 1}
	pages := []page{{cards: []bulletin.Card{old, {ID: "b"}}}, {cards: []bulletin.Card{young}}}
	for range 2 {
		cards, next := merge(pages, "", 10)
		require.Equal(t, []bulletin.Card{{ID: "a", Text: "new", Age: 1, Nodes: 2}, {ID: "b", Nodes: 1}}, cards)
		require.Empty(t, next)
		slices.Reverse(pages)
	}
}

// Whoever reads page by page reads each card that any node has once, in order, and comes to an end,
// whatever nodes have. Some of what they have is no card.
func TestPagesHaveEachCardOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.SliceOfN(rapid.SliceOfDistinct(rapid.StringMatching(`[a-e]{1,3}`), rapid.ID[string]), 1, 5).Draw(t, "nodes")
		most := rapid.IntRange(1, 5).Draw(t, "most")
		want, got := []string{}, []string{}
		for _, has := range nodes {
			slices.Sort(has)
			want = append(want, has...)
		}
		slices.Sort(want)
		want = slices.DeleteFunc(slices.Compact(want), func(id string) bool { return id[0] == 'c' })
		for from, asked := "", 0; ; asked++ {
			require.LessOrEqual(t, asked, 50*len(nodes))
			var pages []page
			for _, has := range nodes {
				texts := []string{"1"}
				for _, id := range has {
					if text := id + "\x001 0 2 x"; id > from && len(texts) <= most {
						texts = append(texts, text)
						if id[0] == 'c' {
							texts[len(texts)-1] = id + "\x001 0 0 expired"
						}
					}
				}
				pages = append(pages, newPage("k", texts, most))
			}
			cards, next := merge(pages, from, most)
			require.LessOrEqual(t, len(cards), most)
			for _, c := range cards {
				got = append(got, c.ID)
			}
			if next == "" {
				break
			}
			require.Greater(t, next, from)
			from = next
		}
		require.Equal(t, want, append([]string{}, got...))
	})
}

// A node whose ids are in no order has nobody read for ever: what is next is behind what was asked
// for.
func TestPagesInNoOrderEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOf(rapid.StringMatching(`[a-e]{0,2}`))
		var pages []page
		most := rapid.IntRange(1, 4).Draw(t, "most")
		for _, has := range rapid.SliceOfN(ids, 1, 5).Draw(t, "nodes") {
			texts := []string{"1"}
			for _, id := range has {
				texts = append(texts, id+"\x001 0 2 x")
			}
			pages = append(pages, newPage("k", texts, most))
		}
		from := rapid.StringMatching(`[a-e]{0,2}`).Draw(t, "from")
		cards, next := merge(pages, from, most)
		for _, c := range cards {
			require.Greater(t, c.ID, from)
		}
		require.True(t, next == "" || next > from)
	})
}

// An entry is read if it has all its parts, of this version, and no longer than any may be.
func TestParse(t *testing.T) {
	long := strings.Repeat("t", bulletin.MaxEntryText)
	class := strings.Repeat("c", bulletin.MaxClass)
	for text, want := range map[string]bulletin.Entry{
		"1 2 3 - a b": {At: time.UnixMilli(2), Count: 3, Text: "a b"}, "1 2 3 late ": {At: time.UnixMilli(2), Count: 3, Class: "late"},
		"1 0 1 - \x00 \n1 2 ": {At: time.UnixMilli(0), Count: 1, Text: "\x00 \n1 2 "}, "1 2 3 " + class + " " + long: {At: time.UnixMilli(2), Count: 3, Class: class, Text: long},
	} {
		e, ok := parse("j", text)
		require.True(t, ok, "%q", text)
		want.Journal, want.Nodes = "j", 1
		require.Equal(t, want, e)
	}
	for _, text := range []string{
		"", "1", "1 2 3 -", "2 2 3 - a", "1 -2 3 - a", "1 2 0 - a", "1 2 x - a", "1 2 3  a", "1 9007199254740993 1 - a", "1  2 3 - a", "1 2 3 - " + long + "t", "1 2 3 c" + class + " a",
	} {
		e, ok := parse("j", text)
		require.False(t, ok, "%.40q", text)
		require.Zero(t, e)
	}
}

// Nodes that have counted differently, or have not heard all, make one list: each entry once, with
// the largest count, and of a class the newest of those that follow one another.
func TestEntriesOfSeveralNodes(t *testing.T) {
	lists := [][]string{
		{"1 4 1 - d", "no entry", "1 3 3 c x", "1 1 1 - a"},
		{"1 4 1 - e", "1 3 2 c x", "1 1 1 - a"},
		{"1 4 1 - d", "1 2 1 c x"},
		{},
	}
	told := func(most int) (all []string) {
		for _, e := range entries("j", lists, most) {
			all = append(all, fmt.Sprintf("%d %d %s %s %d", e.At.UnixMilli(), e.Count, e.Class, e.Text, e.Nodes))
		}
		return all
	}
	want := []string{"4 1  e 1", "4 1  d 2", "3 3 c x 2", "1 1  a 2"}
	for range 2 {
		require.Equal(t, want, told(10))
		require.Equal(t, want[:2], told(2))
		slices.Reverse(lists)
	}
}

// What several nodes tell is heard once, and what one tells again is heard again.
func TestHearerPassesOnOnce(t *testing.T) {
	var heard []string
	h := &hearer{f: func(e bulletin.Entry) { heard = append(heard, e.Text) }, told: make(map[same]*tellers)}
	tell := func(text string, nodes ...int) {
		for _, node := range nodes {
			e, ok := parse("j", text)
			require.True(t, ok)
			h.hear(node, e)
		}
	}
	tell("1 5 1 - a", 0, 1, 2)
	tell("1 5 2 - a", 1, 0, 2) // again, and counted
	tell("1 5 1 c a", 2)
	require.Equal(t, []string{"a", "a", "a"}, heard)
	for i := range remembered {
		tell(fmt.Sprint("1 6 1 - ", i), 0)
	}
	require.Len(t, heard, 3+remembered)
	require.Len(t, h.told, remembered, "memory has bounds")
	tell(fmt.Sprint("1 6 1 - ", remembered-1), 1)
	require.Len(t, heard, 3+remembered)
	tell("1 5 1 - a", 1)
	require.Len(t, heard, 4+remembered, "what was forgotten is heard as new")
	h.ended.Store(true)
	tell("1 7 1 - late", 0)
	require.Len(t, heard, 4+remembered)
}
