package board

import (
	"sync"
	"sync/atomic"

	"github.com/tenure-dev/tenure/internal/bulletin"
)

// remembered is the number of entries that a hearer recognizes when another node tells them.
const remembered = 256

// Hear calls f with each entry that is added to a journal of a kind, where Journal is the kind
// alone. It calls f once each time that an entry is added, or more often if an entry is repeated
// quickly. Hear returns at once, and hears entries from when a node has taken the subscription. Not
// promised: any entry at all, so anything that matters must be found out by other means. f is
// called by one goroutine at a time, and must not block.
//
// Call stop, or close the Quorum, to end it. A call of f that is under way goes on.
func (b Board) Hear(kind string, f func(bulletin.Entry)) (stop func()) {
	if b.q == nil {
		return func() {}
	}
	h := &hearer{f: f, told: make(map[same]*tellers)}
	end := b.q.Hear(b.channel(kind), func(node int, message string) {
		if e, ok := parse(kind, message); ok {
			h.hear(node, e)
		}
	})
	return func() {
		h.ended.Store(true)
		end()
	}
}

// hearer passes an entry on once that several nodes tell.
type hearer struct {
	ended atomic.Bool

	mu    sync.Mutex
	f     func(bulletin.Entry) // from this module: it is called with mu held
	told  map[same]*tellers    // guarded by mu
	order [remembered]same     // guarded by mu; a ring
	next  int                  // guarded by mu; the next place in order
}

// tellers counts how often each node has told an entry, and how often the entry was passed on.
type tellers struct {
	times  map[int]int
	passed int
}

func (h *hearer) hear(node int, e bulletin.Entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := sameOf(e)
	by := h.told[k]
	if by == nil {
		delete(h.told, h.order[h.next])
		by = &tellers{times: make(map[int]int)}
		h.order[h.next], h.told[k] = k, by
		h.next = (h.next + 1) % remembered
	}
	// If one node tells an entry again, the entry was added again.
	if by.times[node]++; by.times[node] > by.passed && !h.ended.Load() {
		by.passed++
		h.f(e)
	}
}
