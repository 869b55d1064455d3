package elector

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// Kind is what happened to this replica.
type Kind string

// The kinds of Change.
const (
	Elected  Kind = "elected"
	Resigned Kind = "resigned" // gave up its term, and the lease was released
	Lost     Kind = "lost"     // the lease ended by itself, or is left to run out
)

// Reason is why a term ended, in one of a few stable words.
type Reason string

// The reasons of a Change that is not Elected.
const (
	ReasonShutdown     Reason = "shutdown"      // Run's context ended
	ReasonResigned     Reason = "resigned"      // Term.Resign was called, or an operator ordered it: Err then names the operator and why
	ReasonReturned     Reason = "returned"      // lead returned nil
	ReasonFailed       Reason = "failed"        // lead returned an error or panicked, or a tracer or the logger did
	ReasonDeadline     Reason = "deadline"      // the lease's validity ran out
	ReasonRefused      Reason = "refused"       // a quorum of nodes no longer had the lease
	ReasonClosed       Reason = "closed"        // the Quorum was closed
	ReasonDrainTimeout Reason = "drain_timeout" // lead did not return in time, and the lease is left to run out
)

// lossReason returns why a lease was lost.
func lossReason(err error) Reason {
	if lost, is := errors.AsType[*redlock.LostError](err); is {
		return Reason(lost.Reason)
	}
	return ReasonDeadline
}

// Change is a transition of this replica. Every Elected is followed by one Resigned or Lost of the
// same term before the next Elected.
type Change struct {
	Kind   Kind
	Term   uint64 // Term.Number
	At     time.Time
	Reason Reason // empty for Elected
	Err    error  // ErrResigned, lead's error, the cause of Run's context, or the lease's loss
}

// String returns the kind, the term and, if not nil, Err, for people.
func (c Change) String() string {
	if c.Err != nil {
		return fmt.Sprintf("%s, term %d: %v", c.Kind, c.Term, c.Err)
	}
	return fmt.Sprintf("%s, term %d", c.Kind, c.Term)
}

// Changes returns this replica's transitions from the call on, in order. None is lost, however
// slowly they are read: unread transitions are kept in memory. If this replica leads now, the
// Elected of its term comes first. The sequence ends when ctx ends, after the transitions that had
// happened by then; with a nil ctx it never ends. To see the last transition, end ctx after Run has
// returned.
//
// There may be any number of sequences, and none slows the election down. Each range over a
// sequence begins at the call of Changes.
func (e *Elector) Changes(ctx context.Context) iter.Seq[Change] {
	if ctx == nil {
		ctx = context.Background()
	}
	current, from := e.feed.subscribe()
	return func(yield func(Change) bool) {
		if current != nil && !yield(*current) {
			return
		}
		for at := from; at.wait(ctx) && yield(at.change); at = at.next {
		}
	}
}

// feed is a list of changes that grows at its end. Each reader has its own place in it. Entries
// that all readers have passed are garbage.
type feed struct {
	mu      sync.Mutex
	end     *entry  // guarded by mu; the entry to be filled next
	current *Change // guarded by mu; the Elected of the term that lasts
}

// entry is one change of a feed. change and next do not change after ready is closed.
type entry struct {
	ready  chan struct{}
	change Change
	next   *entry
}

// wait returns true once the entry holds a change, or false if ctx ends first.
func (e *entry) wait(ctx context.Context) bool {
	select {
	case <-e.ready:
	case <-ctx.Done():
	}
	return isClosed(e.ready)
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
