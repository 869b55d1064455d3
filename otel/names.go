package tenureotel

import (
	"iter"
	"slices"
	"sync"
)

// names keeps what is made once for a name: attribute sets, and what is observed. It is bounded,
// because names may be made up as the program runs: those beyond the limit share what is made for
// OtherLeases, which is the name for other elections, jobs and nodes too.
type names[T any] struct {
	limit  int
	create func(name string) *T

	mu    sync.RWMutex
	known map[string]*T // guarded by mu
}

func newNames[T any](limit int, create func(name string) *T) *names[T] {
	return &names[T]{limit: limit, create: create, known: make(map[string]*T)}
}

// get returns what was made for the name, or makes it. Names that are the same as text share it.
func (n *names[T]) get(name string) *T {
	name = text(name)
	n.mu.RLock()
	t := n.find(name)
	n.mu.RUnlock()
	if t != nil {
		return t
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if t := n.find(name); t != nil {
		return t
	}
	if len(n.known) >= n.limit {
		name = OtherLeases
	}
	t = n.create(name)
	n.known[name] = t
	return t
}

// find returns what there is for the name, and nil if that is still to be made. Called with mu
// held, for reading at least.
func (n *names[T]) find(name string) *T {
	if t := n.known[name]; t != nil || len(n.known) < n.limit {
		return t
	}
	return n.known[OtherLeases]
}

// all ranges over what has been made so far.
func (n *names[T]) all() iter.Seq[*T] {
	n.mu.RLock()
	made := make([]*T, 0, len(n.known))
	for _, t := range n.known {
		made = append(made, t)
	}
	n.mu.RUnlock()
	return slices.Values(made)
}
