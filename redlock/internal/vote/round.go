// Package vote counts the answers of several nodes to one operation, and says when the outcome is
// decided.
package vote

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Reply is a node's answer in a round.
type Reply struct {
	wire.Answer

	Err    error         // why there is no answer
	Unsent bool          // with an error: the server has not carried it out
	At     clock.Instant // when it came; 0 if the server did not answer
	Took   time.Duration // from the question on; for tracers only
}

// Round is one operation sent to several nodes at once. It ends as soon as its outcome is certain:
// when Need nodes agreed, or so many did not that Need cannot be reached any more; or else when
// Decided says so. It also ends when all nodes have answered. Later replies are recorded and passed
// to the follower; nothing waits for them.
//
// Its exported fields are set before the first reply. It is safe for concurrent use from then on.
type Round struct {
	Need    int
	Decided func([]Reply) bool // for operations with another rule; may be nil. It is called with the round locked

	mu      sync.Mutex
	follow  Follower // guarded by mu; gets the replies that come after the end; may be nil
	replies []Reply  // guarded by mu
	tally   Tally    // guarded by mu
	over    bool     // guarded by mu

	Memory

	few [5]Reply // the memory of replies if it is large enough, to save an allocation
}

// Memory is what a Wait needs. A Round that has the Memory of an earlier one, which nothing uses
// any more, saves several allocations.
type Memory struct {
	ended chan struct{} // capacity 1; empty until the round ends
	timer *time.Timer   // stopped, except during a Wait; nil before the first one
}

// Follower takes the replies that come after the end of a round.
type Follower interface {
	Late(slot int, rep *Reply) // called for every such reply, with no lock held
}

// Tally is the state of a round in numbers.
type Tally struct {
	Agreed, Refused, Failed int

	Token   uint64 // the smallest token of the nodes that agreed
	Same    int    // how many nodes agreed with that token
	Success bool   // enough nodes agreed
	Expired bool   // the round ended by its timeout: nodes without a reply timed out
}

// add counts a reply.
func (t *Tally) add(rep *Reply, need int) {
	switch rep.Verdict {
	case wire.OK:
		t.Agreed++
		t.Success = t.Agreed >= need
		switch {
		case t.Agreed == 1, rep.Token < t.Token:
			t.Token, t.Same = rep.Token, 1
		case rep.Token == t.Token:
			t.Same++
		}
	case wire.Refused:
		t.Refused++
	case wire.Failed:
		t.Failed++
	}
}

// Start makes a Round ready for that many nodes. All of it is zero but for the Memory.
func (r *Round) Start(nodes, need int) {
	if r.ended == nil {
		r.ended = make(chan struct{}, 1)
	}
	select {
	case <-r.ended: // nothing waited for the end of the earlier round
	default:
	}
	r.Need = need
	r.tally.Success = need <= 0
	if nodes <= len(r.few) {
		r.replies = r.few[:nodes]
	} else {
		r.replies = make([]Reply, nodes)
	}
}

// Answer records a node's reply. Only the first one of a node counts.
func (r *Round) Answer(slot int, rep Reply) {
	r.mu.Lock()
	if r.replies[slot].Verdict != wire.Pending {
		r.mu.Unlock()
		return
	}
	r.replies[slot] = rep
	r.tally.add(&r.replies[slot], r.Need)
	if r.over {
		follow := r.follow
		r.mu.Unlock()
		if follow != nil {
			follow.Late(slot, &r.replies[slot]) // the reply does not change any more
		}
		return
	}
	if r.certain() {
		r.end()
	}
	r.mu.Unlock()
}

// Skip records that a node is not asked, with the verdict that this counts as.
func (r *Round) Skip(slot int, as wire.Verdict) {
	r.Answer(slot, Reply{Answer: wire.Answer{Verdict: as}})
}

// certain reports whether the round has an outcome. Called with mu held.
func (r *Round) certain() bool {
	agreed, missed := r.tally.Agreed, r.tally.Refused+r.tally.Failed
	switch {
	case agreed+missed == len(r.replies):
		return true
	case r.Decided != nil:
		return r.Decided(r.replies)
	default:
		return agreed >= r.Need || missed > len(r.replies)-r.Need
	}
}

// end ends the round, and wakes the goroutine that waits for it. Called with mu held.
func (r *Round) end() {
	r.over = true
	r.ended <- struct{}{} // it has room for one
}

// Expire ends the round, unless it is over: nodes that have not answered have timed out.
func (r *Round) Expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.tally.Expired = true
		r.end()
	}
}

// IsOver reports whether the outcome is certain, or the round has expired.
func (r *Round) IsOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// Count returns how many replies have the verdict.
func Count(replies []Reply, v wire.Verdict) int {
	n := 0
	for i := range replies {
		if replies[i].Verdict == v {
			n++
		}
	}
	return n
}

// LeaveTo has f get the replies that come from now on, once the round is over. It returns the
// replies that have come and that want selects. want is called with the round locked.
func (r *Round) LeaveTo(f Follower, want func(slot int, rep *Reply) bool) (came []Slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follow = f
	for slot := range r.replies {
		if rep := &r.replies[slot]; rep.Verdict != wire.Pending && want(slot, rep) {
			came = append(came, Slot{slot, rep})
		}
	}
	return came
}

// Slot is a reply, which does not change any more, and the place of its node in the round.
type Slot struct {
	Slot int
	*Reply
}

// Tally returns how the round stands, in numbers.
func (r *Round) Tally() Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally
}

// Outcome is a round as it stood when it ended, or stands now.
type Outcome struct {
	Tally
	Replies []Reply
}

// Outcome returns how the round stands, with a copy of all replies.
func (r *Round) Outcome() Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Outcome{Tally: r.tally, Replies: slices.Clone(r.replies)}
}

// Wait returns when the outcome is certain, the timeout has passed or ctx ends. In the last two
// cases it ends the round. Its only error is that of ctx. Only one goroutine may wait for a round,
// and once.
func (r *Round) Wait(ctx context.Context, timeout time.Duration) error {
	if r.IsOver() {
		return nil
	}
	if timeout = max(timeout, clock.AtOnce); r.timer == nil {
		r.timer = time.NewTimer(timeout)
	} else {
		r.timer.Reset(timeout)
	}
	defer r.timer.Stop()
	select {
	case <-r.ended:
		return nil
	case <-r.timer.C:
	case <-ctx.Done():
	}
	r.Expire()
	return ctx.Err()
}
