package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// TryAcquire acquires the key if no owner holds it. It does not wait for a holder: if there is one,
// it returns a *HeldError after one round.
//
// Callers that ask at the same moment may split the vote, so that none of them gets the key. Only
// then TryAcquire asks again, up to eight times in all. One of the rivals keeps what it was granted
// and asks for the rest. The others take back what they were granted and ask again after one or two
// measured round trips, and later each time. With two rivals that takes about two round trips of
// the winner, and four of the other one. A node that does not answer costs its timeout in the first
// round only.
//
// In each process one caller at a time asks for a key. If its answer is that the key cannot be had,
// the callers that came before it asked get the same answer. All others ask in their turn.
//
// The lease is extended in the background until it is released or lost. It takes ctx's values, for
// tracing, but not its cancellation.
//
// Errors:
//   - *HeldError (ErrHeld): another owner has the key, or may have it with nodes that do not
//     answer.
//   - *SplitError (ErrSplit): no caller got the key in all these rounds, as far as is known.
//     Another call is worth it.
//   - *QuorumError (ErrNoQuorum): too few nodes answered.
//   - ErrTimeout: a quorum granted the key so late that less than half of the TTL was left.
//   - *OptionError, ErrClosed, or ctx's own error.
//
// After an error nothing is held: what some nodes granted is released again in the background, also
// when ctx was cancelled.
func (q *Quorum) TryAcquire(ctx context.Context, key string, opts ...LeaseOption) (*Lease, error) {
	return q.acquire(ctx, key, false, opts)
}

// Acquire acquires the key as soon as no owner holds it, or returns when ctx ends. It does not poll
// a healthy holder: it wakes when the holder's release is announced, when the holder's keys expire,
// and about once a TTL in case the announcement was lost. Without a quorum of nodes it tries again
// after a random pause, of up to 50 ms at first and up to a second later, which no announcement
// cuts short.
//
// Waiters queue on the nodes. A release calls the waiter that has waited longest, in any process,
// and reserves the key for it for a moment. Nothing is reserved if the release leaves a minimum
// hold (WithMinHold): a caller that asks when that ends may come before the waiter. After a crash
// of the holder the first few waiters ask one after the other. The order is fair while the nodes
// are well; it is not promised. In each process only the first waiter for a key is in that queue.
// The others wait behind it in the process, and cost the nodes nothing.
//
// Errors: ctx's own error, *OptionError or ErrClosed. ctx's error also wraps that of the last
// attempt, for errors.As: an attempt of this call, or of the caller before it.
func (q *Quorum) Acquire(ctx context.Context, key string, opts ...LeaseOption) (*Lease, error) {
	return q.acquire(ctx, key, true, opts)
}

// acquire is TryAcquire, or with wait Acquire.
func (q *Quorum) acquire(ctx context.Context, key string, wait bool, opts []LeaseOption) (*Lease, error) {
	if err := checkContext(ctx); err != nil {
		return nil, err
	}
	a, err := q.newAcquisition(key, opts)
	if err != nil {
		return nil, err
	}
	return a.traced(ctx, wait)
}

// acquisition is one call of TryAcquire or Acquire.
type acquisition struct {
	q        *Quorum
	keys     wire.Keys
	cfg      *leaseConfig
	attempts int
	votes    int
	freeIn   time.Duration // after a HeldError: until enough of the refusing nodes' keys have expired
	vacancy  vacancy       // of the key, as far as a waiter knows
	awaited  string        // the identity of the holder that a waiter met last
	missed   clock.Instant // when an attempt of a waiter last found too few nodes; 0 for never
	waits    bool          // it is an Acquire; set for tracers only
	starving bool          // see starves
	first    bool          // it is the first of its line; false if it passed the line
	came     uint64        // its place in the queue, by when it came; 0 until it waits in a line or joins the queue
	won      *Lease        // the lease, until it is returned
	member   string        // its name in the queue; empty while it does not wait there
	rank     int           // after a HeldError: how many waiters are before it; -1 if that is not known

	contest   contest  // of the present try
	candidate *attempt // the attempt that asks, or stays between two rounds; nil between attempts
}

func (q *Quorum) newAcquisition(key string, opts []LeaseOption) (*acquisition, error) {
	if q.none() {
		return nil, ErrClosed
	}
	keys, err := q.cfg.keys(key)
	if err != nil {
		return nil, err
	}
	cfg, err := q.cfg.forLease(opts)
	if err != nil {
		return nil, err
	}
	return &acquisition{q: q, keys: keys, cfg: cfg}, nil
}

func (a *acquisition) traced(ctx context.Context, wait bool) (*Lease, error) {
	// If a tracer or the logger panics, the grants and the lease are given back here.
	defer func() { a.withdraw(ctx, false); _ = a.won.Release(ctx) }()
	t, began := a.q.cfg.tracers.acquire, clock.Instant(0)
	if t != nil {
		ctx = t.TraceAcquireStart(ctx, TraceAcquireStartData{
			Key: a.keys.Name, TTL: a.cfg.ttl, Nodes: len(a.q.nodes), Quorum: a.q.need, Wait: wait,
		})
		a.waits, began = wait, a.q.clock.Now()
	}
	l, err := a.inLine(ctx, wait)
	if t != nil {
		t.TraceAcquireEnd(ctx, a.traceEnd(began, l, err))
	}
	a.won = nil
	return l, err
}

// traceEnd returns what tracers are told of an acquisition or a round that began at that time and
// has ended now.
func (a *acquisition) traceEnd(began clock.Instant, l *Lease, err error) TraceAcquireEndData {
	now := a.q.clock.Now()
	data := TraceAcquireEndData{Key: a.keys.Name, Duration: now.Sub(began), Attempts: a.attempts, Votes: a.votes, Lease: l, Err: err, WaitedFor: a.awaited}
	if l != nil {
		if data.Vacant = l.vacant; data.Vacant > 0 {
			data.FreedBy = a.vacancy.by
		}
		data.FencingToken = l.token
		data.Validity = l.remaining()
	}
	return data
}

// attempting is round, and tells the tracer of it.
func (a *acquisition) attempting(ctx context.Context) (*Lease, bool, error) {
	t := a.q.cfg.tracers.attempt
	if t == nil {
		return a.round(ctx)
	}
	a.foreign(func() {
		ctx = t.TraceAttemptStart(ctx, TraceAttemptStartData{
			Key: a.keys.Name, TTL: a.cfg.ttl, Nodes: len(a.q.nodes), Quorum: a.q.need, Wait: a.waits, Attempt: a.attempts + 1,
		})
	})
	began := a.q.clock.Now()
	l, split, err := a.round(ctx)
	a.foreign(func() { t.TraceAttemptEnd(ctx, a.traceEnd(began, l, err)) })
	return l, split, err
}

// foreign calls foreign code for the acquisition. Other callers of the key pass the line meanwhile,
// see lines.
func (a *acquisition) foreign(call func()) {
	if !a.first {
		call()
		return
	}
	a.q.lines.foreign(a.keys.Name, call)
}

// try asks in rounds until the key is granted or refused. It asks again after a split vote, and
// once after a broken connection.
func (a *acquisition) try(ctx context.Context) (*Lease, error) {
	reconnected := a.hasMissed() // a waiter without a quorum keeps to its pauses, and does not make connections in vain
	a.contest = contest{}
	for {
		l, split, err := a.attempting(ctx)
		var pause time.Duration
		switch {
		case err == nil:
			return l, nil
		case split && a.candidate != nil:
			pause = a.contest.beforeStaying(a.candidate.times)
		case split && a.contest.rounds < maxRounds:
			pause = a.contest.beforeReturning()
		case !reconnected && brokenConnection(err):
			// A connection that broke while it was idle shows it only now. Ask again on a new one,
			// as a new owner. A client of valkey-go needs a moment to give the broken one up.
			reconnected, pause = true, reconnectPause
		default:
			return nil, err
		}
		select {
		case <-time.After(max(pause, clock.AtOnce)):
		case <-ctx.Done():
			a.withdraw(ctx, false)
			return nil, newContextError(ctx, a.keys.Name, err)
		case <-a.q.done:
			a.withdraw(ctx, false)
			return nil, ErrClosed
		}
	}
}

// reconnectPause is how long valkey-go has to give up a broken connection. It is far above what
// valkey-go needs, and far below a node's timeout.
const reconnectPause = 5 * time.Millisecond

// brokenConnection reports whether an acquisition found no quorum, and the connection to a node
// broke. A connection that could not be made does not count: there is none to give up.
func brokenConnection(err error) bool {
	var qe *QuorumError
	if !errors.As(err, &qe) || qe.Op != OpAcquire {
		return false
	}
	return slices.ContainsFunc(qe.Errs, func(e *NodeError) bool {
		var op *net.OpError
		return e.ErrorType() == "connection" && !(errors.As(e, &op) && op.Op == "dial")
	})
}

// round asks every node once. A candidate that has stayed asks only the nodes that have not granted
// it the key yet. split reports a vote that no owner won, or a counter that others were faster to
// raise.
func (a *acquisition) round(ctx context.Context) (l *Lease, split bool, err error) {
	if a.candidate == nil {
		why := a.q.roster.Enter(ctx)
		if ctx.Err() != nil {
			return nil, false, newContextError(ctx, a.keys.Name, nil)
		}
		if why != nil {
			return nil, false, a.q.unadmitted(a.keys.Name, why)
		}
		if !a.q.begin() {
			return nil, false, ErrClosed
		}
		a.candidate = a.attempt(wire.NewOwner(a.cfg.identity, a.cfg.payload))
		a.candidate.propose(a.q.draw(0))
		a.candidate.since, a.candidate.early = a.q.clock.Now(), !a.q.roster.Admitted()
	}
	c := a.candidate
	rd, start, timeout := a.ask(ctx)
	waited := rd.Wait(ctx, timeout)
	t := rd.Tally()
	a.votes = t.Agreed
	fail := func(err error) (*Lease, bool, error) {
		a.withdraw(ctx, false)
		return nil, false, err
	}
	if waited != nil {
		return fail(newContextError(ctx, a.keys.Name, nil))
	}
	if !t.Success { // on success the single replies tell nothing more
		if o := a.outcome(rd); !o.Success {
			err, split := a.refusal(o, start)
			if !split || !a.stays(o) {
				a.withdraw(ctx, !split)
			}
			return nil, split, err
		}
	}
	token, split, err := a.agree(ctx, rd, timeout)
	if err != nil {
		a.withdraw(ctx, false)
		return nil, split, err
	}
	if !a.q.roster.Admitted() { // before the round, too few nodes may have answered the entry
		why := a.q.roster.Enter(ctx)
		switch {
		case ctx.Err() != nil:
			return fail(newContextError(ctx, a.keys.Name, nil))
		case why != nil:
			return fail(a.q.unadmitted(a.keys.Name, why))
		case !a.q.roster.Admitted(): // too few nodes have answered the entry
			return fail(a.q.unadmitted(a.keys.Name, node.ErrTimeout))
		}
		c.early = true
	}
	if c.early && a.counted(rd) < a.q.need {
		return fail(a.q.unadmitted(a.keys.Name, node.ErrTimeout))
	}
	if err := tooLate(a.keys.Name, a.q.clock.Now().Sub(c.since), a.cfg); err != nil {
		return fail(err)
	}
	l = newLease(ctx, a.q, c, token, start, rd)
	if l == nil {
		return fail(ErrClosed)
	}
	if v, now := a.vacancy, a.q.clock.Now(); v.by != "" && v.since <= now {
		l.vacant = max(now.Sub(v.since), 1)
	}
	a.forget()
	a.q.rounds.Done()
	a.won = l
	return l, false, nil
}

// counted returns how many of the nodes that granted the key in a round count now. The entry of the
// process may have found that a node is another server than the one that others know by its name.
func (a *acquisition) counted(rd *operation) (n int) {
	for i, rep := range rd.Outcome().Replies {
		if rep.Verdict == wire.OK && a.q.roster.Against(i) == nil {
			n++
		}
	}
	return n
}

// attempt makes an attempt with that owner value.
func (a *acquisition) attempt(owner string) *attempt {
	return &attempt{keys: &a.keys, owner: owner, cfg: a.cfg, first: a.first, member: a.member}
}

// ask sends a round of the candidate. A node that has granted it the key by now is not asked again.
// Its first answer is as good as a later one: the key lives for a TTL from then, and it has raised
// its counter if it could. All other nodes are asked, also those that have not answered yet. A node
// answers in the order of the requests, so its last answer is about the last request.
func (a *acquisition) ask(ctx context.Context) (rd *operation, start clock.Instant, timeout time.Duration) {
	c := a.candidate
	a.attempts++
	c.times++
	start, timeout = c.since, a.q.cfg.timeout(a.cfg.ttl)
	rd = a.q.newOperation(OpAcquire, a.q.need)
	rd.Decided = func(replies []vote.Reply) bool { return a.q.acquireCertain(replies, &a.contest) }
	var want func(int) bool
	if c.asked != nil {
		start = a.q.clock.Now()
		known := c.asked.Outcome().Replies
		for i, rep := range known {
			if rep.Verdict == wire.OK {
				rd.Answer(i, rep)
			}
		}
		want = func(i int) bool { return known[i].Verdict != wire.OK }
	}
	call := c.call(wire.Acquire)
	call.TTL = a.cfg.ttlText
	rd.send(ctx, c, call, start.Add(timeout), want)
	c.asked.drop()
	c.asked = rd
	return rd, start, timeout
}

// outcome returns the outcome of the round. A node that did not answer the round before, and has
// not answered this one, counts as failed.
func (a *acquisition) outcome(rd *operation) vote.Outcome {
	o := rd.Outcome()
	for i := range o.Replies {
		if o.Replies[i].Verdict == wire.Pending && a.contest.isSilent(i) {
			o.Replies[i] = vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}, Err: node.ErrTimeout}
		}
	}
	return o
}

// stays reports whether the candidate keeps what it was granted and asks again. It does if rounds
// are left, it leads, and its next grant would not be too late.
func (a *acquisition) stays(o vote.Outcome) bool {
	c := a.candidate
	if a.contest.rounds >= maxRounds || !a.contest.leads(c.owner, o) {
		return false
	}
	done := a.q.clock.Now().Add(a.contest.beforeStaying(c.times) + 2*a.contest.trip)
	return tooLate(a.keys.Name, done.Sub(c.since), a.cfg) == nil
}

// withdraw takes back what the candidate, if there is one, may have been granted. See takeBack.
func (a *acquisition) withdraw(ctx context.Context, waitsOn bool) {
	switch {
	case a.candidate == nil:
	case a.candidate.asked == nil: // a tracer panicked before a node was asked
		a.forget()
		a.q.rounds.Done()
	default:
		c := a.candidate
		a.candidate = nil // also if the rest panics
		a.q.takeBack(ctx, c, waitsOn)
		c.asked.drop()
	}
}

// forget drops the candidate, and takes nothing back.
func (a *acquisition) forget() {
	a.candidate.asked.drop()
	a.candidate.asked, a.candidate = nil, nil
}

// tooLate returns an error if a grant leaves less than half of the TTL. The timeouts of the nodes
// keep rounds below that, unless the process was stopped in the middle of one or entered after it,
// see package roster.
func tooLate(key string, elapsed time.Duration, cfg *leaseConfig) error {
	if elapsed > cfg.ttl/2 {
		return fmt.Errorf("%w: acquiring %q took %v of a TTL of %v, less than half was left: use a longer TTL or look at the nodes", ErrTimeout, key, elapsed, cfg.ttl)
	}
	return nil
}
