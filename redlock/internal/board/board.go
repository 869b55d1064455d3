// Package board makes one answer of what several nodes have of cards and journals, and one call of
// what several nodes tell of an entry. Each node has what it has heard, and anybody may have
// written it: nothing here trusts that nodes agree, or that what they have is in order.
//
// It asks nobody, and keeps no time.
package board

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Card is one as nodes have it together.
type Card struct {
	wire.Card
	Nodes int // that have it
}

// Cards makes one page of the pages of cards that nodes have behind an id, each of at most so many.
// next is where to go on, and empty where there are no more. Of a card that nodes have in several
// versions it takes the youngest. pages has nil for a node that has not answered.
func Cards(pages []*wire.Told, after string, most int) (cards []Card, next string) {
	merged := make(map[string]Card)
	// Beyond the last id of a full page it is not known what that node has.
	var end *string
	for _, page := range pages {
		if page == nil {
			continue
		}
		for _, c := range page.Cards {
			if c.Lifetime < 0 {
				continue // an id that is no card
			}
			was := merged[c.ID]
			if was.Nodes > 0 && was.Age <= c.Age {
				c = was.Card
			}
			merged[c.ID] = Card{Card: c, Nodes: was.Nodes + 1}
		}
		if n := len(page.Cards); n >= most && n > 0 {
			// One that is not behind what was asked for is not in the order of ids, and tells
			// nothing.
			if last := page.Cards[n-1].ID; last > after && (end == nil || last < *end) {
				end = &last
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(merged)) {
		if id > after && (end == nil || id <= *end) && len(cards) < most {
			cards = append(cards, merged[id])
		}
	}
	switch {
	case len(cards) == most:
		return cards, cards[most-1].ID
	case end != nil:
		return cards, *end
	default:
		return cards, ""
	}
}

// Entry is one as nodes have it together.
type Entry struct {
	wire.Entry
	Nodes int // that have it
}

// Entries makes one list of what nodes have of a journal, the newest first, of at most so many.
// lists has nil for a node that has not answered.
func Entries(lists []*wire.Told, most int) []Entry {
	merged := make(map[id]Entry)
	for _, list := range lists {
		if list == nil {
			continue
		}
		for _, e := range list.Entries {
			k := idOf(e)
			was := merged[k]
			e.Count = max(e.Count, was.Count)
			merged[k] = Entry{Entry: e, Nodes: was.Nodes + 1}
		}
	}
	entries := slices.SortedFunc(maps.Values(merged), func(x, y Entry) int {
		return cmp.Or(cmp.Compare(y.At, x.At), strings.Compare(y.Text, x.Text))
	})
	// Nodes may have counted differently, and not all have heard of the last of a class.
	entries = slices.CompactFunc(entries, func(newer, older Entry) bool {
		return newer.Class != "" && newer.Class == older.Class
	})
	return entries[:min(len(entries), most)]
}

// id is what nodes have in common of an entry: each counts by itself.
type id struct {
	at          int64
	class, text string
}

func idOf(e wire.Entry) id { return id{e.At, e.Class, e.Text} }

// remembered is how many entries a Hearer knows again when another node tells them.
const remembered = 256

// Hearer hears what nodes publish of entries, for a listen.Listener, and passes each on once. It is
// safe for concurrent use.
type Hearer struct {
	f     func(wire.Entry)
	ended atomic.Bool

	mu     sync.Mutex
	known  map[id]map[int]bool // guarded by mu; the nodes that have told it, since it was heard last
	order  [remembered]id      // guarded by mu; a ring
	next   int                 // guarded by mu; in order
	heard  []wire.Entry        // guarded by mu; what f is to be called with
	passes bool                // guarded by mu; a goroutine calls f with it, until there is no more
}

// NewHearer makes one that calls f, on one goroutine at a time.
func NewHearer(f func(wire.Entry)) *Hearer { return &Hearer{f: f, known: make(map[id]map[int]bool)} }

// End has nothing heard from now on. A call of f that is under way goes on.
func (h *Hearer) End() { h.ended.Store(true) }

// Heard takes an entry that a node publishes. What a node tells again was entered again, and what
// another one has told was not.
func (h *Hearer) Heard(node int, message string) {
	e, ok := wire.ParseEntry(message)
	if !ok || h.ended.Load() {
		return
	}
	if h.add(node, e) {
		h.pass()
	}
}

// add keeps an entry that is to be passed on, and reports whether the caller is to do that.
func (h *Hearer) add(node int, e wire.Entry) (pass bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := idOf(e)
	switch by := h.known[k]; {
	case by == nil:
		delete(h.known, h.order[h.next])
		h.order[h.next], h.known[k] = k, map[int]bool{node: true}
		h.next = (h.next + 1) % remembered
	case !by[node]:
		by[node] = true
		return false
	default:
		clear(by)
		by[node] = true
	}
	if len(h.heard) == remembered {
		return false // f takes its time: entries may be missed
	}
	h.heard = append(h.heard, e)
	pass, h.passes = !h.passes, true
	return pass
}

// pass calls f with what was heard, and with what is heard meanwhile.
func (h *Hearer) pass() {
	for {
		h.mu.Lock()
		if h.passes = len(h.heard) > 0; !h.passes {
			h.mu.Unlock()
			return
		}
		e := h.heard[0]
		h.heard = h.heard[1:]
		h.mu.Unlock()
		if !h.ended.Load() {
			h.f(e)
		}
	}
}

// Subscribed is told whether a node tells entries. That it does not is told elsewhere.
func (h *Hearer) Subscribed(int, error) {}

// Lost is told that a node tells nothing any more.
func (h *Hearer) Lost(int) {}
