package node

import "sync"

// maxQueue bounds the requests that wait for a node, and separately the releases that are to be
// repeated.
const maxQueue = 1 << 16

// queue has the requests that were sent to a node and that its writer has not taken. It is safe for
// concurrent use.
type queue struct {
	mu      sync.Mutex
	waiting []*Request // guarded by mu
	closed  bool       // guarded by mu
}

// put adds a request, or returns ErrClosed or ErrOverloaded. A queue that is full takes nothing
// until the writer empties it: after the exchange that is under way, at the latest. The writer
// drops requests that are too old.
func (q *queue) put(r *Request) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return ErrClosed
	case len(q.waiting) >= maxQueue:
		return ErrOverloaded
	}
	q.waiting = append(q.waiting, r)
	return nil
}

// take empties the queue, and returns to with its requests behind, in order.
func (q *queue) take(to []*Request) []*Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	to = append(to, q.waiting...)
	clear(q.waiting)
	q.waiting = q.waiting[:0]
	return to
}

// close has put refuse everything, and reports whether the queue was open.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := !q.closed
	q.closed = true
	return was
}
