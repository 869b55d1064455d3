package web

import (
	"sync"
	"time"
)

// store makes things once for all who ask for them at the same time, and keeps them.
type store[K comparable, V any] struct {
	most int

	mu    sync.Mutex
	known map[K]*made[V] // guarded by mu; at most most
}

// made is a thing that was made, or is being made.
type made[V any] struct {
	began time.Time
	done  chan struct{}
	is    V  // what is made of it is there when done is closed
	was   *V // what was known before; nil for nothing
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

// make makes it, in place: what is there when how panics stays.
func (m *made[V]) make(how func(*V)) {
	defer close(m.done)
	how(&m.is)
}

// begin returns what is being made, or was made, if that is good. Else it is the caller's, who is
// to make it. It returns nil if there is no room, because too much is being made.
func (s *store[K, V]) begin(of K, begins V, good func(*made[V]) bool) (is *made[V], mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is = &made[V]{began: time.Now(), done: make(chan struct{}), is: begins}
	if was := s.known[of]; was != nil {
		if good(was) {
			return was, false
		}
		if was.ended() {
			before := was.is // a copy: that in its place would keep was, and what was before that
			is.was = &before
		}
	} else if len(s.known) >= s.most && !s.forget() {
		return nil, false
	}
	s.known[of] = is
	return is, true
}

// forget makes room for another one: that of the one that began first, if one was made.
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
