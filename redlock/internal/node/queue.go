package node

import (
	"sync"

	"github.com/tenure-dev/tenure/internal/clock"
)

// maxQueue bounds the requests that wait for a node, and separately the releases that are to be
// repeated.
const maxQueue = 1 << 16

// queue is what has been sent to a node and not been taken by its writer. It is safe for concurrent
// use.
type queue struct {
	mu      sync.Mutex
	waiting []*Request // guarded by mu
	stale   []*Request // guarded by mu; too old to be sent
	closed  bool       // guarded by mu
}

// put adds a request, or returns why not. A queue that is full throws out what is too old.
func (q *queue) put(r *Request, c *clock.Clock) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= maxQueue {
		q.sweep(c.Now())
	}
	switch {
	case q.closed:
		return ErrClosed
	case len(q.waiting) >= maxQueue:
		return ErrOverloaded
	}
	q.waiting = append(q.waiting, r)
	return nil
}

// sweep sets what is too old aside, for the writer to answer. Called with mu held.
func (q *queue) sweep(now clock.Instant) {
	kept := q.waiting[:0]
	for _, r := range q.waiting {
		if now <= r.Expires {
			kept = append(kept, r)
		} else {
			q.stale = append(q.stale, r)
		}
	}
	clear(q.waiting[len(kept):])
	q.waiting = kept
}

// take empties the queue into another one's place, and returns what it had, in order, and what was
// too old.
func (q *queue) take(place []*Request) (waiting, stale []*Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting, stale = q.waiting, q.stale
	q.waiting, q.stale = place[:0], nil
	return waiting, stale
}

// close has nothing more put, and reports whether it was open.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := !q.closed
	q.closed = true
	return was
}
