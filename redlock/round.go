package redlock

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// attempt is what the requests of one owner value have in common. Once it has ended, only releases
// are sent for it: a request that would set or extend its keys is dropped instead.
type attempt struct {
	keys     *wire.Keys
	owner    string
	cfg      leaseConfig
	sequence []string // of cfg.once, as calls have it
	token    uint64   // of the lease that it became
	ended    atomic.Bool
	again    atomic.Bool // it has asked more than once

	member    string // of the queue, see queue.go; empty for an attempt that does not wait
	queueLife string // of a queue that it joins
}

// call is an operation of the attempt; the caller adds what only that operation has.
func (at *attempt) call(op wire.Op) *wire.Call {
	return &wire.Call{
		Op: op, Keys: at.keys, Owner: at.owner, Token: at.token, Sequence: at.sequence,
		Member: at.member, QueueLife: at.queueLife,
	}
}

// request is one operation on one node.
type request struct {
	call    *wire.Call
	attempt *attempt // nil for a probe, and for an extension of many
	round   *round
	ctx     context.Context // for the node tracer only
	expires clock.Instant   // not sent after this
	pause   time.Duration   // before the next try of a release that failed
	slot    int             // place in the round
	convoy  *convoy         // of an extension of several leases; nil for others
	alone   bool            // was sent together with others, and is to be sent by itself
	began   clock.Instant   // when it was queued; for tracers only
}

// op is the operation as users know it.
func (r *request) op() Op { return Op(r.call.Op.String()) }

// hasEnded reports whether the attempt has ended that the request would go on with.
func (r *request) hasEnded() bool {
	return r.attempt != nil && r.call.Op.OfAttempt() && r.attempt.ended.Load()
}

// reply is a node's answer to a request.
type reply struct {
	wire.Answer

	at   clock.Instant // when it came, for acquires and probes
	took time.Duration // since it was queued; for tracers only
	err  *NodeError
}

// round is one operation sent to several nodes at once. It ends as soon as its outcome is certain:
// unless decided says otherwise when need nodes agreed, or when so many did not that need cannot be
// reached any more. Later replies are recorded and passed to late, nothing waits for them.
type round struct {
	op      Op
	need    int
	follow  follower           // is told of the end and of what comes after; may be nil; guarded by mu once the round has been sent
	decided func([]reply) bool // for operations with another rule; may be nil
	done    chan struct{}      // nil where nobody waits
	mu      sync.Mutex
	replies []reply // guarded by mu
	agreed  int     // guarded by mu
	missed  int     // refused or failed; guarded by mu
	over    bool    // guarded by mu
	expired bool    // guarded by mu; ended by its timeout

	// Where that is enough, replies and requests are here, and no objects of their own.
	few   [5]reply
	asked [5]request
}

// follower goes on with a round.
type follower interface {
	ended(*round)                        // called once, by whoever made the outcome certain
	late(rd *round, slot int, rep reply) // called for every reply after that
}

func newRound(op Op, nodes, need int) *round {
	r := &round{}
	r.start(op, nodes, need)
	r.done = make(chan struct{})
	return r
}

// start makes a round for which nobody waits of a zero one.
func (r *round) start(op Op, nodes, need int) {
	r.op, r.need = op, need
	if nodes <= len(r.few) {
		r.replies = r.few[:nodes]
	} else {
		r.replies = make([]reply, nodes)
	}
}

// requests are those to so many nodes.
func (r *round) requests(nodes int) []request {
	if nodes <= len(r.asked) {
		return r.asked[:nodes]
	}
	return make([]request, nodes)
}

// settle records a node's reply. The first one counts.
func (r *round) settle(slot int, rep reply) {
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
			follow.late(r, slot, rep)
		}
		return
	}
	if rep.Verdict == wire.OK {
		r.agreed++
	} else {
		r.missed++
	}
	if !r.certain() {
		r.mu.Unlock()
		return
	}
	r.end()
}

// certain is called with mu held.
func (r *round) certain() bool {
	switch {
	case r.agreed+r.missed == len(r.replies):
		return true
	case r.decided != nil:
		return r.decided(r.replies)
	default:
		return r.agreed >= r.need || r.missed > len(r.replies)-r.need //mutant:certain-too-early,certain-too-late
	}
}

// end is entered with mu held and leaves with it released.
func (r *round) end() {
	r.over = true
	follow := r.follow // another may follow as soon as the end is known, see leaveTo
	r.mu.Unlock()
	if r.done != nil {
		close(r.done)
	}
	if follow != nil {
		follow.ended(r)
	}
}

// expire ends the round: nodes that have not answered by now are taken for lost.
func (r *round) expire() {
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return
	}
	r.expired = true
	r.end()
}

// count returns how many replies have the verdict.
func count(replies []reply, v wire.Verdict) int {
	n := 0
	for _, rep := range replies {
		if rep.Verdict == v {
			n++
		}
	}
	return n
}

// leaveTo has f hear of replies that come from now on to a round that is over, and returns those
// that have come, as far as want selects them.
func (r *round) leaveTo(f follower, want func(*reply) bool) (came []slotReply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.follow = f
	for slot := range r.replies {
		if rep := &r.replies[slot]; rep.Verdict != wire.Pending && want(rep) {
			came = append(came, slotReply{slot, *rep})
		}
	}
	return came
}

// slotReply is the reply of a node, and its place in the round.
type slotReply struct {
	slot int
	reply
}

// outcome is a round as it stood when it ended, or stands now.
type outcome struct {
	replies []reply
	agreed  int
	success bool
	expired bool // the round ended by its timeout: nodes without a reply timed out
}

func (r *round) outcome() outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := outcome{replies: slices.Clone(r.replies), expired: r.expired}
	o.agreed = count(o.replies, wire.OK)
	o.success = o.agreed >= r.need
	return o
}

// wait returns when the outcome is certain, the timeout has passed or ctx ends, and with an error
// only in the last case.
func (r *round) wait(ctx context.Context, timeout time.Duration, timers *timers) error {
	timer := timers.start(timeout) //mutant:timeout-ignored
	defer timers.stop(timer)
	select {
	case <-r.done:
	case <-timer.C:
		r.expire()
	case <-ctx.Done():
		r.expire()
		return ctx.Err()
	}
	return nil
}

// quorumError is the error of a round that failed because nodes did.
func (q *Quorum) quorumError(op Op, key string, o outcome) *QuorumError {
	e := &QuorumError{Op: op, Key: key, Succeeded: o.agreed, Need: q.need, Nodes: len(o.replies)}
	for i, rep := range o.replies {
		switch {
		case rep.Verdict == wire.Failed:
			e.Errs = append(e.Errs, rep.err)
		case rep.Verdict == wire.Pending && o.expired:
			e.Errs = append(e.Errs, q.nodes[i].failure(op, ErrTimeout))
		case rep.Verdict == wire.Pending:
			e.unheard++
		}
	}
	return e
}
