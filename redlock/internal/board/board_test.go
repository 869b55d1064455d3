package board

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// page is what a node has of cards, in the order of their ids.
func page(cards ...wire.Card) *wire.Told { return &wire.Told{Cards: cards} }

func card(id, text string, age time.Duration) wire.Card {
	return wire.Card{ID: id, Text: text, Age: age}
}

// Of what nodes have of a card the youngest counts, and an id that is none counts for nothing.
func TestYoungestCardCounts(t *testing.T) {
	for _, pages := range [][]*wire.Told{
		{page(card("a", "old", 2), card("b", "b", 1)), nil, page(card("a", "new", 1), wire.Card{ID: "c", Lifetime: -1})},
		{page(card("a", "new", 1), wire.Card{ID: "c", Lifetime: -1}), page(card("a", "old", 2), card("b", "b", 1)), nil},
	} {
		cards, next := Cards(pages, "", 10)
		require.Equal(t, []Card{{card("a", "new", 1), 2}, {card("b", "b", 1), 1}}, cards)
		require.Empty(t, next)
	}
	cards, next := Cards(nil, "", 10)
	require.Empty(t, cards)
	require.Empty(t, next)
}

// Whoever reads page by page reads each card that any node has once, in order, and comes to an end,
// whatever nodes have.
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
		want = slices.Compact(want)
		for after, asked := "", 0; ; asked++ {
			require.LessOrEqual(t, asked, 2*len(want)+len(nodes))
			pages := make([]*wire.Told, len(nodes))
			for i, has := range nodes {
				pages[i] = page()
				for _, id := range has {
					if id > after && len(pages[i].Cards) < most {
						pages[i].Cards = append(pages[i].Cards, card(id, "", 0))
					}
				}
			}
			cards, next := Cards(pages, after, most)
			require.LessOrEqual(t, len(cards), most)
			for _, c := range cards {
				got = append(got, c.ID)
			}
			if next == "" {
				break
			}
			require.Greater(t, next, after)
			after = next
		}
		require.Equal(t, want, got)
	})
}

// A node whose ids are in no order has nobody read for ever: what is next is behind what was asked
// for.
func TestPagesInNoOrderEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOf(rapid.StringMatching(`[a-e]{0,2}`))
		var pages []*wire.Told
		for _, has := range rapid.SliceOfN(ids, 1, 5).Draw(t, "nodes") {
			pages = append(pages, page())
			for _, id := range has {
				pages[len(pages)-1].Cards = append(pages[len(pages)-1].Cards, card(id, "", 0))
			}
		}
		after := rapid.StringMatching(`[a-e]{0,2}`).Draw(t, "after")
		cards, next := Cards(pages, after, rapid.IntRange(1, 4).Draw(t, "most"))
		for _, c := range cards {
			require.Greater(t, c.ID, after)
		}
		if next != "" {
			require.Greater(t, next, after)
		}
	})
}

// Nodes that have counted differently, or have not heard all, make one list: each entry once, with
// the largest count, and of a class the newest of those that follow one another.
func TestEntriesOfSeveralNodes(t *testing.T) {
	e := func(at, count int64, class, text string) wire.Entry {
		return wire.Entry{At: at, Count: count, Class: class, Text: text}
	}
	lists := []*wire.Told{
		{Entries: []wire.Entry{e(4, 1, "", "d"), e(3, 3, "c", "x"), e(1, 1, "", "a")}},
		nil,
		{Entries: []wire.Entry{e(4, 1, "", "e"), e(3, 2, "c", "x"), e(1, 1, "", "a")}},
		{Entries: []wire.Entry{e(4, 1, "", "d"), e(2, 1, "c", "x")}},
	}
	want := []Entry{{e(4, 1, "", "e"), 1}, {e(4, 1, "", "d"), 2}, {e(3, 3, "c", "x"), 2}, {e(1, 1, "", "a"), 2}}
	require.Equal(t, want, Entries(lists, 10))
	require.Equal(t, want[:2], Entries(lists, 2))
	slices.Reverse(lists)
	require.Equal(t, want, Entries(lists, 10))
	require.Empty(t, Entries(nil, 10))
}

// What several nodes tell is heard once, and what one tells again is heard again. What is no entry
// is not heard, and nothing is after the end.
func TestHearerPassesOnOnce(t *testing.T) {
	var heard []string
	h := NewHearer(func(e wire.Entry) { heard = append(heard, e.Text) })
	tell := func(text string, nodes ...int) {
		for _, node := range nodes {
			h.Heard(node, text)
		}
	}
	tell("1 5 1 - a", 0, 1, 2)
	tell("1 5 2 - a", 1, 0, 2) // again, and counted
	tell("2 5 1 - b", 0, 1, 2)
	tell("1 5 1 c a", 2)
	require.Equal(t, []string{"a", "a", "a"}, heard)
	for i := range remembered {
		tell(fmt.Sprint("1 6 1 - ", i), 0)
	}
	require.Len(t, heard, 3+remembered)
	require.Len(t, h.known, remembered, "memory has bounds")
	tell(fmt.Sprint("1 6 1 - ", remembered-1), 1)
	require.Len(t, heard, 3+remembered)
	tell("1 5 1 - a", 1)
	require.Len(t, heard, 4+remembered, "what was forgotten is heard as new")
	h.End()
	tell("1 7 1 - late", 0)
	require.Len(t, heard, 4+remembered)
	require.False(t, strings.Contains(strings.Join(heard, " "), "b"))
}

// What hears an entry may have another one heard meanwhile: it is called with that later, and never
// twice at a time. Of a crowd that comes meanwhile, some are missed.
func TestHearerIsNotCalledUnderItself(t *testing.T) {
	message := func(i int) string { return fmt.Sprintf("1 %d 1 - text", i) }
	var h *Hearer
	var heard []int64
	running := false
	h = NewHearer(func(e wire.Entry) {
		require.False(t, running)
		running = true
		if e.At == 1 {
			for i := range 2 * remembered {
				h.Heard(0, message(2+i))
			}
		}
		heard = append(heard, e.At)
		running = false
	})
	h.Heard(0, message(1))
	require.Len(t, heard, 1+remembered)
	require.IsIncreasing(t, heard)
	h.Heard(0, message(10_000))
	require.Equal(t, int64(10_000), heard[len(heard)-1], "it goes on")
}
