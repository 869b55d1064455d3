// Package vote counts who has answered one operation on several nodes, and says when that is
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

	Err  error         // why there is none
	At   clock.Instant // when it came; 0 if the server did not answer
	Took time.Duration // since it was asked; for tracers only
}

// Round is one operation sent to several nodes at once. It ends as soon as its outcome is certain:
// unless Decided says otherwise when Need nodes agreed, or when so many did not that Need cannot be
// reached any more. Later replies are recorded and passed to the follower, nothing waits for them.
//
// Its exported fields are set before the first reply. It is safe for concurrent use from then on.
type Round struct {
	Need    int
	Decided func([]Reply) bool // for operations with another rule; may be nil. It is called with the round locked

	done    chan struct{}
	mu      sync.Mutex
	follow  Follower // guarded by mu; is told of what comes after the end; may be nil
	replies []Reply  // guarded by mu
	agreed  int      // guarded by mu
	missed  int      // refused or failed; guarded by mu
	over    bool     // guarded by mu
	expired bool     // guarded by mu; ended by its timeout

	few [5]Reply // where that is enough, replies are here, and no object of their own
}

// Follower goes on with a round that is over.
type Follower interface {
	Late(rd *Round, slot int, rep *Reply) // called for every reply after the end, with no lock held
}

// Start makes a round of a zero one.
func (r *Round) Start(nodes, need int) {
	r.Need = need
	r.done = make(chan struct{})
	if nodes <= len(r.few) {
		r.replies = r.few[:nodes]
	} else {
		r.replies = make([]Reply, nodes)
	}
}

// Answer records a node's reply. The first one counts.
func (r *Round) Answer(slot int, rep Reply) {
	r.mu.Lock()
	if r.replies[slot].Verdict != wire.Pending { //mutant:node-counted-twice
		r.mu.Unlock()
		return
	}
	r.replies[slot] = rep
	if r.over {
		follow := r.follow
		r.mu.Unlock()
		if follow != nil {
			follow.Late(r, slot, &r.replies[slot]) // which does not change any more
		}
		return
	}
	if rep.Verdict == wire.OK {
		r.agreed++
	} else {
		r.missed++
	}
	if r.certain() {
		r.end()
	}
	r.mu.Unlock()
}

// Skip records that a node is not asked, and what that counts as.
func (r *Round) Skip(slot int, as wire.Verdict) {
	r.Answer(slot, Reply{Answer: wire.Answer{Verdict: as}})
}

// certain is called with mu held.
func (r *Round) certain() bool {
	switch {
	case r.agreed+r.missed == len(r.replies):
		return true
	case r.Decided != nil:
		return r.Decided(r.replies)
	default:
		return r.agreed >= r.Need || r.missed > len(r.replies)-r.Need //mutant:certain-too-early,certain-too-late
	}
}

// end is called with mu held.
func (r *Round) end() {
	r.over = true
	close(r.done)
}

// Expire ends the round: nodes that have not answered by now are taken for lost.
func (r *Round) Expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.expired = true
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

// LeaveTo has f hear of replies that come from now on to a round that is over, and returns the
// nodes that have answered, as far as want selects their replies.
func (r *Round) LeaveTo(f Follower, want func(*Reply) bool) (came []Slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follow = f
	for slot := range r.replies {
		if rep := &r.replies[slot]; rep.Verdict != wire.Pending && want(rep) {
			came = append(came, Slot{slot, rep})
		}
	}
	return came
}

// Slot is the reply of a node, which does not change any more, and its place in the round.
type Slot struct {
	Slot int
	*Reply
}

// Outcome is a round as it stood when it ended, or stands now.
type Outcome struct {
	Replies []Reply
	Agreed  int
	Success bool
	Expired bool // the round ended by its timeout: nodes without a reply timed out
}

// Outcome returns how the round stands.
func (r *Round) Outcome() Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := Outcome{Replies: slices.Clone(r.replies), Expired: r.expired}
	o.Agreed = Count(o.Replies, wire.OK)
	o.Success = o.Agreed >= r.Need
	return o
}

// Wait returns when the outcome is certain, the timeout has passed or ctx ends, and with an error
// only in the last case.
func (r *Round) Wait(ctx context.Context, timeout time.Duration, timers *Timers) error {
	timer := timers.start(timeout) //mutant:timeout-ignored
	defer timers.stop(timer)
	select {
	case <-r.done:
	case <-timer.C:
		r.Expire()
	case <-ctx.Done():
		r.Expire()
		return ctx.Err()
	}
	return nil
}

// Timers are used again and again: a timer with its channel is several objects. The zero value is
// ready, and safe for concurrent use.
type Timers struct{ pool sync.Pool }

func (t *Timers) start(d time.Duration) *time.Timer {
	if timer, ok := t.pool.Get().(*time.Timer); ok {
		timer.Reset(d)
		return timer
	}
	return time.NewTimer(d)
}

func (t *Timers) stop(timer *time.Timer) {
	timer.Stop()
	t.pool.Put(timer)
}
