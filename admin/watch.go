package admin

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/tenure-dev/tenure/internal/board"
	"github.com/tenure-dev/tenure/internal/bulletin"
	"github.com/tenure-dev/tenure/redlock"
)

// Change is something that has happened. One of its fields is set.
type Change struct {
	Run   *PastRun // has ended
	Skip  *Skip
	Term  *TermChange
	Order *Order // was given, or answered
	// Missed means that the reader was too slow, and that changes were lost: read anew.
	Missed bool
}

// TermChange is a beginning or an end of a term.
type TermChange struct {
	Election string
	Term     uint64
	Identity string
	Event    string // elected, resigned or lost
	Reason   string // see elector.Reason
}

// watchedAhead is how many changes wait for a reader.
const watchedAhead = 256

// Watch tells what happens from now on, as it is told: runs that end, ticks that are skipped, terms
// that begin and end, orders and their answers. It asks nothing of the nodes. What is told while no
// node can be heard is missed, and so is what a process does not tell that was killed: read anew
// from time to time what has to be right.
//
// It ends when ctx ends or the Quorum is closed, and yields an error once if it cannot begin, or
// when it ends: redlock.ErrClosed, or ctx's own.
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
				default: // the reader has others to read
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
				yield(Change{}, context.Cause(ctx))
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
	t, ok := bulletin.ParseTerm(e.Text)
	return Change{Term: &TermChange{Election: t.Election, Term: t.Term, Identity: t.By, Event: t.Event, Reason: t.Reason}}, ok
}

func orderChange(e bulletin.Entry) (Change, bool) {
	b, ok := bulletin.ParseOrder(e.Text)
	o := newOrder(b)
	o.add(b, e)
	return Change{Order: o}, ok
}
