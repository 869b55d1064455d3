package elector

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"
)

// Kind tells what happened to this replica.
type Kind string

// The kinds of Change.
const (
	Elected  Kind = "elected"
	Resigned Kind = "resigned" // gave up its term, and the lease was released
	Lost     Kind = "lost"     // the lease ended by itself, or is left to
)

// Change is a transition of this replica. Every Elected is followed by one Resigned or Lost of the same term before
// the next Elected.
type Change struct {
	Kind Kind
	Term uint64 // Term.Number
	At   time.Time
	Err  error // why the term ended: ErrResigned, lead's error, the end of Run's context, or the lease's loss
}

func (c Change) String() string {
	if c.Err != nil {
		return fmt.Sprintf("%s, term %d: %v", c.Kind, c.Term, c.Err)
	}
	return fmt.Sprintf("%s, term %d", c.Kind, c.Term)
}

// Changes returns this replica's transitions from now on, in order and none lost, however slowly they are read;
// what has not been read is kept in memory. If this replica leads now, the Elected of its term comes first. The
// sequence ends with ctx, which should outlive Run's if the last transition is to be seen.
//
// There may be any number of sequences, and none slows the election down. The sequence begins at the call of
// Changes, each time it is ranged over.
func (e *Elector) Changes(ctx context.Context) iter.Seq[Change] {
	current, from := e.feed.subscribe()
	return func(yield func(Change) bool) {
		if current != nil && (ctx.Err() != nil || !yield(*current)) {
			return
		}
		for at := from; ; at = at.next {
			select {
			case <-at.ready:
			case <-ctx.Done():
				return
			}
			if ctx.Err() != nil || !yield(at.change) {
				return
			}
		}
	}
}

// feed is a list of changes that grows at its end. Each reader has its own place in it, and what all of them have
// passed is garbage.
type feed struct {
	mu      sync.Mutex
	end     *entry  // guarded by mu; the entry to be filled next
	current *Change // guarded by mu; the Elected of the term that lasts
}

// entry is a change once ready is closed, after which it does not change any more.
type entry struct {
	ready  chan struct{}
	change Change
	next   *entry
}

func newFeed() *feed { return &feed{end: &entry{ready: make(chan struct{})}} }

func (f *feed) publish(c Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current = nil; c.Kind == Elected {
		f.current = &c
	}
	e := f.end
	e.change, e.next = c, &entry{ready: make(chan struct{})}
	f.end = e.next
	close(e.ready)
}

func (f *feed) subscribe() (current *Change, from *entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current, f.end
}
