package node

import "sync"

// maxQueue bounds the requests that wait for a node, and separately the releases that are to be
// repeated.
const maxQueue = 1 << 16

// queue is what has been sent to a node and not been taken by its writer. It is safe for concurrent
// use.
type queue struct {
	mu      sync.Mutex
	waiting []*Request // guarded by mu
	closed  bool       // guarded by mu
}

// put adds a request, or returns why not. A queue that is full takes nothing until the writer has
// been there, which drops what is too old: it comes after an exchange, at the latest.
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

// take empties the queue into another one's place, and returns what it had, in order.
func (q *queue) take(place []*Request) (waiting []*Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting, q.waiting = q.waiting, place[:0]
	return waiting
}

// close has nothing more put, and reports whether it was open.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := !q.closed
	q.closed = true
	return was
}
