package board

import (
	"sync"
	"sync/atomic"

	"github.com/tenure-dev/tenure/internal/bulletin"
)

// remembered is how many entries a hearer knows again when another node tells them.
const remembered = 256

// Hear has f called with each entry that is added to a journal of a kind, whose Journal is the kind
// alone: once each time that it is added, or more often if that is repeated quickly. It returns at
// once, and hears what is added once a node has taken the subscription. Entries may be missed, also
// all of them: what matters must be found out by other means. f is called by one goroutine at a
// time, and must not block.
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

// hearer passes on once what several nodes tell.
type hearer struct {
	ended atomic.Bool

	mu    sync.Mutex
	f     func(bulletin.Entry) // of this module: it is called with mu held
	told  map[same]*tellers    // guarded by mu
	order [remembered]same     // guarded by mu; a ring
	next  int                  // guarded by mu; in order
}

// tellers are how often each node has told an entry, and how often that was passed on.
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
	// A node that tells it again was told it again.
	if by.times[node]++; by.times[node] > by.passed && !h.ended.Load() {
		by.passed++
		h.f(e)
	}
}
