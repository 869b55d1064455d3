package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// TryAcquire acquires the key if nobody holds it. It does not wait for a holder: then it returns a
// *HeldError after one round. Only when several ask at the same moment and split the vote, so that
// nobody would get the key, does it ask again, up to eight times in all. One of the rivals keeps
// what it was granted and asks for the rest; the others take back what they have and ask again
// after one or two round trips, as measured, and then more. With two rivals that takes about two
// round trips of the winner, and four of the other one. A node that does not answer costs its
// timeout in the first round only.
//
// Of several callers of a process one asks for the key at a time. What it is told, if that is that
// the key cannot be had, is told to those who had called before it asked; the next asks otherwise.
//
// The lease is extended in the background until it is released or lost. It takes ctx's values, for
// tracing, but not its cancellation.
//
// Errors: *HeldError (ErrHeld), also when nodes that do not answer may have the rest of its votes;
// *SplitError (ErrSplit) when nobody got the key in all these rounds, as far as is known, which is
// worth another call; *QuorumError (ErrNoQuorum) when too few nodes answered, ErrTimeout when a
// quorum did so late that less than half of the TTL was left, *OptionError, ErrClosed, or ctx's own
// error. After an error nothing is held: what some nodes granted is released again in the
// background, also when ctx was cancelled.
func (q *Quorum) TryAcquire(ctx context.Context, key string, opts ...LeaseOption) (*Lease, error) {
	return q.acquire(ctx, key, false, opts)
}

// Acquire acquires the key as soon as nobody holds it, or returns when ctx ends. It does not poll a
// healthy holder: it wakes when the holder's release is announced, when the holder's keys expire,
// and about once a TTL in case the announcement was lost. Without a quorum of nodes it tries again
// after a random pause, of up to 50 ms at first and up to a second later, which no announcement
// cuts short.
//
// Waiters queue: a release calls the one that has waited longest, of whatever process, and reserves
// the key for it for a moment. After a crash the first few come one after the other. That is
// fairness where the nodes are well, and no promise. Of a process's callers that wait for one key
// the first is in that queue, and the others stand behind it: they cost the nodes nothing.
//
// Errors: ctx's own error (which also carries the last attempt's, its own or that of the caller
// before it, for errors.As), *OptionError or ErrClosed.
func (q *Quorum) Acquire(ctx context.Context, key string, opts ...LeaseOption) (*Lease, error) {
	return q.acquire(ctx, key, true, opts)
}

// acquire is TryAcquire, or Acquire, which waits for a holder.
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
	keys     *wire.Keys // names
	names    wire.Keys
	cfg      *leaseConfig
	attempts int
	votes    int
	freeIn   time.Duration // until enough of the refusing nodes' keys have expired, after a HeldError
	vacancy  vacancy       // of the key, as far as a waiter knows
	awaited  string        // the identity of the holder that a waiter met last
	missed   clock.Instant // when too few nodes answered a waiter last; 0 for never
	waits    bool          // for a holder, as tracers are told
	starving bool          // see starves
	first    bool          // of its line; nobody stands behind one that is not
	came     uint64        // when, as its place in the queue; 0 if it stood in no line before, see lines
	won      *Lease        // until it is returned
	member   string        // of the queue; empty while it does not wait there
	rank     int           // how many wait before it, after a HeldError; -1 if that is not known

	contest   contest   // of the present try
	candidate candidate // that asks, or stays between two rounds; zero between attempts
}

// candidate is an attempt that is not a lease yet. One that stays in a split vote asks several
// times.
type candidate struct {
	*attempt
	since clock.Instant // when it asked first: what it is granted by any of its rounds lasts that long at least, and a TTL
	hint  string        // the same in each round, so that nodes agree on the token; noHint where the clocks were not known
	asked *operation    // its last; nil before the first
	times int           // how often it asked
	early bool          // it began before the process had entered
}

// noHint is the hint of an attempt that knows no quorum of clocks.
const noHint = "0"

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
	a := &acquisition{q: q, names: keys, cfg: cfg}
	a.keys = &a.names
	return a, nil
}

func (a *acquisition) traced(ctx context.Context, wait bool) (*Lease, error) {
	// After a panic of a tracer or the logger nobody else would.
	defer func() { a.withdraw(ctx, givesUp); _ = a.won.Release(ctx) }()
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

// traceEnd is what tracers are told of what began at that time, and has ended now.
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

// attempting is round, of which the tracer is told.
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

// foreign calls foreign code for the acquisition.
func (a *acquisition) foreign(call func()) {
	if !a.first {
		call()
		return
	}
	a.q.lines.foreign(a.keys.Name, call)
}

// try asks until a round is decided.
func (a *acquisition) try(ctx context.Context) (*Lease, error) {
	reconnected := a.hasMissed() // else a waiter would make connections that bring nothing without its pauses
	a.contest = contest{}
	for {
		l, split, err := a.attempting(ctx)
		var pause time.Duration
		switch {
		case err == nil:
			return l, nil
		case split && a.candidate.attempt != nil:
			pause = a.contest.beforeStaying(a.candidate.times)
		case split && a.contest.rounds < maxRounds:
			pause = a.contest.beforeReturning()
		case !reconnected && brokenConnection(err):
			// Connections that broke while they were idle show it only now: ask again on new ones,
			// as a new owner. A client of valkey-go needs a moment to give a broken one up.
			reconnected, pause = true, reconnectPause
		default:
			return nil, err
		}
		select {
		case <-time.After(max(pause, clock.AtOnce)):
		case <-ctx.Done():
			a.withdraw(ctx, givesUp)
			return nil, newContextError(ctx, a.keys.Name, err)
		case <-a.q.done:
			a.withdraw(ctx, givesUp)
			return nil, ErrClosed
		}
	}
}

// reconnectPause is far above what valkey-go needs, and far below a node's timeout.
const reconnectPause = 5 * time.Millisecond

// brokenConnection reports whether a quorum failed and a connection that a node had broken was the
// reason. Where none could be made there is nothing to give up.
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

// round asks every node once, or if the candidate has stayed each that has not granted yet. split
// reports a vote that no owner won.
func (a *acquisition) round(ctx context.Context) (l *Lease, split bool, err error) {
	c := &a.candidate
	if c.attempt == nil {
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
		hint := strconv.FormatInt(a.q.clocks.Hint(a.q.clock.Now(), clock.Wall()), 10)
		*c = candidate{
			attempt: a.attempt(hint, wire.NewOwner(a.cfg.identity, a.cfg.payload)),
			since:   a.q.clock.Now(),
			hint:    hint,
			early:   !a.q.roster.Admitted(),
		}
	}
	rd, start, timeout := a.ask(ctx)
	waited := rd.Wait(ctx, timeout, &a.q.waits)
	t := rd.Tally()
	a.votes = t.Agreed
	fail := func(err error) (*Lease, bool, error) {
		a.withdraw(ctx, givesUp)
		return nil, false, err
	}
	if waited != nil {
		return fail(newContextError(ctx, a.keys.Name, nil))
	}
	if !t.Success { // else there is nothing to read in the replies
		if o := a.outcome(rd); !o.Success {
			err, split := a.refusal(o, start)
			if !split || !a.stays(o) {
				then := sleeps
				if split {
					then = returns
				}
				a.withdraw(ctx, then)
			}
			return nil, split, err
		}
	}
	token, err := a.agree(ctx, c.attempt, rd, timeout)
	if err != nil {
		return fail(err)
	}
	if err := tooLate(a.keys.Name, a.q.clock.Now().Sub(c.since), a.cfg); err != nil {
		return fail(err)
	}
	if !a.q.roster.Admitted() { // it may have begun with this one
		why := a.q.roster.Enter(ctx)
		switch {
		case ctx.Err() != nil:
			return fail(newContextError(ctx, a.keys.Name, nil))
		case why != nil:
			return fail(a.q.unadmitted(a.keys.Name, why))
		case !a.q.roster.Admitted(): // too few nodes have answered who uses them
			return fail(a.q.unadmitted(a.keys.Name, node.ErrTimeout))
		}
		c.early = true
	}
	if c.early && a.counted(rd) < a.q.need {
		return fail(a.q.unadmitted(a.keys.Name, node.ErrTimeout))
	}
	l = newLease(ctx, a.q, c.attempt, token, c.since, start, rd)
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

// counted is how many of the nodes that have granted the key in a round count now: with the entry
// one may have been found to be another server than others know.
func (a *acquisition) counted(rd *operation) (n int) {
	for i, rep := range rd.Outcome().Replies {
		if rep.Verdict == wire.OK && a.q.roster.Against(i) == nil {
			n++
		}
	}
	return n
}

// attempt makes one with that hint and owner value.
func (a *acquisition) attempt(hint, owner string) *attempt {
	return &attempt{
		keys: a.keys, owner: owner, lock: wire.Lock(hint, owner), cfg: a.cfg,
		first: a.first, member: a.member,
	}
}

// ask sends a round of the candidate. Nodes that have granted it the key, by now, are not asked
// again: an answer is as good as a later one, because a key lives for a TTL from then, and its
// counter does not move while the owner is the same. All others are, also those that have not
// answered yet, in the order of its requests: which the last answer of a node is then about.
func (a *acquisition) ask(ctx context.Context) (rd *operation, start clock.Instant, timeout time.Duration) {
	c := &a.candidate
	a.attempts++
	c.times++
	start, timeout = c.since, a.q.cfg.timeout(a.cfg.ttl)
	rd = a.q.newOperation(OpAcquire, a.q.need)
	rd.Decided = func(replies []vote.Reply) bool { return a.q.acquireCertain(replies, &a.contest) }
	var want func(int) bool
	if c.asked != nil {
		start = a.q.clock.Now()
		c.again.Store(true)
		known := c.asked.Outcome().Replies
		for i, rep := range known {
			if rep.Verdict == wire.OK {
				rd.Answer(i, rep)
			}
		}
		want = func(i int) bool { return known[i].Verdict != wire.OK }
	}
	call := c.call(wire.Acquire)
	call.TTL, call.Hint, call.Skew = a.cfg.ttlText, c.hint, strconv.FormatInt(a.q.cfg.skew().Microseconds(), 10)
	rd.send(ctx, c.attempt, call, start.Add(timeout), want)
	c.asked.drop()
	c.asked = rd
	return rd, start, timeout
}

// outcome is the round's, in which nodes that were silent before and have not answered have failed.
func (a *acquisition) outcome(rd *operation) vote.Outcome {
	o := rd.Outcome()
	for i := range o.Replies {
		if o.Replies[i].Verdict == wire.Pending && a.contest.isSilent(i) {
			o.Replies[i] = vote.Reply{Answer: wire.Answer{Verdict: wire.Failed}, Err: node.ErrTimeout}
		}
	}
	return o
}

// stays reports whether the candidate keeps what it was granted and asks again: if it leads, and
// there is time left for a grant that is not too late.
func (a *acquisition) stays(o vote.Outcome) bool {
	c := &a.candidate
	if a.contest.rounds >= maxRounds || !a.contest.leads(c.owner, o) {
		return false
	}
	done := a.q.clock.Now().Add(a.contest.beforeStaying(c.times) + 2*a.contest.trip)
	return tooLate(a.keys.Name, done.Sub(c.since), a.cfg) == nil
}

// withdraw takes back what the candidate may have been granted, if there is one.
func (a *acquisition) withdraw(ctx context.Context, then next) {
	switch {
	case a.candidate.attempt == nil:
	case a.candidate.asked == nil: // a tracer panicked before a node was asked
		a.forget()
		a.q.rounds.Done()
	default:
		c := a.candidate
		a.candidate = candidate{} // whatever becomes of the rest
		a.q.takeBack(ctx, c.attempt, c.asked, then)
		c.asked.drop()
	}
}

// forget has no candidate any more.
func (a *acquisition) forget() {
	a.candidate.asked.drop()
	a.candidate = candidate{}
}

// tooLate refuses a grant with less than half of the TTL left. The timeouts of nodes keep rounds
// below that; a process that was stopped in the middle of one is not bound by them.
func tooLate(key string, elapsed time.Duration, cfg *leaseConfig) error {
	if elapsed > cfg.ttl/2 {
		return fmt.Errorf("%w: acquiring %q took %v of a TTL of %v, less than half was left: use a longer TTL or look at the nodes", ErrTimeout, key, elapsed, cfg.ttl)
	}
	return nil
}
