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

// Kind tells what happened to this replica.
type Kind string

// The kinds of Change.
const (
	Elected  Kind = "elected"
	Resigned Kind = "resigned" // gave up its term, and the lease was released
	Lost     Kind = "lost"     // the lease ended by itself, or is left to
)

// Reason tells why a term ended, in one of a few stable words.
type Reason string

// The reasons of a Change that is not Elected.
const (
	ReasonShutdown     Reason = "shutdown"      // Run's context ended
	ReasonResigned     Reason = "resigned"      // Term.Resign was called, or an operator ordered it: then Err says who and why
	ReasonReturned     Reason = "returned"      // lead returned nil
	ReasonFailed       Reason = "failed"        // lead returned an error or panicked, or a tracer or the logger did
	ReasonDeadline     Reason = "deadline"      // the lease's validity ran out
	ReasonRefused      Reason = "refused"       // a quorum of nodes no longer had the lease
	ReasonClosed       Reason = "closed"        // the Quorum was closed
	ReasonDrainTimeout Reason = "drain_timeout" // lead did not return in time, and the lease is left to run out
)

// lossReason is why a lease was lost.
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
	Err    error  // more about the reason: ErrResigned, lead's error, the cause of Run's context, or the lease's loss
}

// String returns the kind and the term, and Err where there is one, for people.
func (c Change) String() string {
	if c.Err != nil {
		return fmt.Sprintf("%s, term %d: %v", c.Kind, c.Term, c.Err)
	}
	return fmt.Sprintf("%s, term %d", c.Kind, c.Term)
}

// Changes returns this replica's transitions from now on, in order and none lost, however slowly
// they are read; what has not been read is kept in memory. If this replica leads now, the Elected
// of its term comes first. The sequence ends with ctx (with a nil one never), after what had
// happened by then; to see the last transition end it after Run has returned.
//
// There may be any number of sequences, and none slows the election down. The sequence begins at
// the call of Changes, each time it is ranged over.
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

// feed is a list of changes that grows at its end. Each reader has its own place in it, and what
// all of them have passed is garbage.
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

// wait returns whether the entry holds a change; if not, ctx has ended.
func (e *entry) wait(ctx context.Context) bool {
	select {
	case <-e.ready:
		return true
	default:
	}
	select {
	case <-e.ready:
		return true
	case <-ctx.Done():
		return false
	}
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
