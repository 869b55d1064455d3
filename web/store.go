package web

import (
	"sync"
	"time"
)

// store makes a value once for all simultaneous requests, and keeps it.
type store[K comparable, V any] struct {
	most int

	mu    sync.Mutex
	known map[K]*made[V] // guarded by mu; at most most
}

// made is a value that was made, or is being made.
type made[V any] struct {
	began time.Time
	done  chan struct{}
	is    V  // the value; complete when done is closed
	was   *V // the value before it; nil for none
}

func newStore[K comparable, V any](most int) *store[K, V] {
	return &store[K, V]{most: most, known: make(map[K]*made[V])}
}

func (m *made[V]) ended() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// make makes the value in place. If how panics, is keeps what how had set.
func (m *made[V]) make(how func(*V)) {
	defer close(m.done)
	how(&m.is)
}

// begin returns the present value of a key if good accepts it. Else it returns a new one, which
// starts as begins: then mine is true, and the caller must make it. It returns nil if there is no
// room, because all kept values are still being made.
func (s *store[K, V]) begin(of K, begins V, good func(*made[V]) bool) (is *made[V], mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is = &made[V]{began: time.Now(), done: make(chan struct{}), is: begins}
	if was := s.known[of]; was != nil {
		if good(was) {
			return was, false
		}
		if was.ended() {
			is.was = new(was.is) // a copy: a pointer into was would keep was, and all values before it
		}
	} else if len(s.known) >= s.most && !s.forget() {
		return nil, false
	}
	s.known[of] = is
	return is, true
}

// forget removes the value that was begun first, among those that are made. It reports whether
// there was one.
func (s *store[K, V]) forget() bool {
	var oldest K
	found := false
	for of, is := range s.known {
		if is.ended() && (!found || is.began.Before(s.known[oldest].began)) {
			oldest, found = of, true
		}
	}
	delete(s.known, oldest)
	return found
}
