package scheduler

import (
	"context"
	"sync"
)

// news is a state of which somebody is told when it changes: in order, and not under a lock.
type news[T comparable] struct {
	tell func(context.Context, T)

	mu      sync.Mutex
	is      T    // guarded by mu
	told    T    // guarded by mu
	telling bool // guarded by mu; somebody tells it, until the last was told
}

// now is the state.
func (n *news[T]) now() T {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.is
}

// become notes a state, and tells it if it has changed.
func (n *news[T]) become(ctx context.Context, is T) {
	n.mu.Lock()
	n.is = is
	if n.telling {
		n.mu.Unlock()
		return
	}
	n.telling = true
	for n.is != n.told {
		is := n.is
		n.told = is
		n.mu.Unlock()
		n.tell(ctx, is)
		n.mu.Lock()
	}
	n.telling = false
	n.mu.Unlock()
}
