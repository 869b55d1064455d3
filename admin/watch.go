package admin

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
)

// Change is an event. Exactly one of its fields is set.
type Change struct {
	Run   *PastRun // a run that has ended
	Skip  *Skip
	Term  *TermChange
	Order *Order // an order that was given, or its answer
	// Missed means that the reader was too slow and changes were dropped: read the state anew.
	Missed bool
}

// TermChange is the beginning or the end of a term.
type TermChange struct {
	Election string
	Term     uint64
	Identity string
	Event    string // elected, resigned or lost
	Reason   string // see elector.Reason
}

// watchedAhead is how many changes are kept for a slow reader; further ones are dropped.
const watchedAhead = 256

// Watch yields changes as processes report them, from now on: runs that end, ticks that are
// skipped, terms that begin and end, orders and their answers. It sends the nodes no questions.
//
// Watch does not yield everything. It misses reports while no node can be heard, and a killed
// process reports nothing. To be sure, read the state anew from time to time.
//
// It ends when ctx ends or the Quorum is closed. It yields one error when it ends, or when it
// cannot begin: *OptionError, redlock.ErrClosed, or ctx's own.
func (c *Client) Watch(ctx context.Context) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if err := checkContext(ctx); err != nil {
			yield(Change{}, err)
			return
		}
		changes := make(chan Change, watchedAhead)
		var missed atomic.Bool
		for kind, read := range map[string]func(bulletin.Entry) (Change, bool){
			bulletin.Runs: runChange, bulletin.Skips: skipChange, bulletin.Terms: termChange, bulletin.Orders: orderChange,
		} {
			defer board.Of(c.q).Hear(kind, func(e bulletin.Entry) {
				change, ok := read(e)
				if !ok {
					return
				}
				select {
				case changes <- change:
				default: // the reader is too slow
					missed.Store(true)
				}
			})()
		}
		for {
			select {
			case change := <-changes:
				if !yield(change, nil) || missed.Swap(false) && !yield(Change{Missed: true}, nil) {
					return
				}
			case <-c.q.Closed():
				yield(Change{}, redlock.ErrClosed)
				return
			case <-ctx.Done():
				yield(Change{}, ended(ctx))
				return
			}
		}
	}
}

func runChange(e bulletin.Entry) (Change, bool) {
	r, ok := newPastRun("", e)
	return Change{Run: &r}, ok
}

func skipChange(e bulletin.Entry) (Change, bool) {
	s, ok := newSkip("", e)
	return Change{Skip: &s}, ok
}

func termChange(e bulletin.Entry) (Change, bool) {
	t, ok := bulletin.Parse[bulletin.Term](e.Text)
	return Change{Term: &TermChange{Election: t.Election, Term: t.Term, Identity: t.By, Event: t.Event, Reason: t.Reason}}, ok
}

func orderChange(e bulletin.Entry) (Change, bool) {
	b, ok := bulletin.Parse[bulletin.Order](e.Text)
	o := newOrder(b)
	o.add(b, e)
	return Change{Order: o}, ok
}
