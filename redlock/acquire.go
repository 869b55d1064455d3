package redlock

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"
)

// A split vote (no owner has a quorum, because several asked at once) is not a refusal: nobody would get the
// key. The attempt is repeated after a random pause that starts at splitPause and doubles.
const (
	maxSplits  = 8
	splitPause = 2 * time.Millisecond
	// When nodes that did not answer may hide a holder, fewer repetitions have to tell.
	maxUnclear = 3
)

// TryAcquire acquires the key if nobody holds it. It does not wait for a holder: then it returns a *HeldError
// after one round. Only when several ask at the same moment and split the vote, so that nobody would get the
// key, is the round repeated: up to eight times, after random pauses that start at 2 ms and double.
//
// The lease is extended in the background until it is released or lost. It takes ctx's values, for tracing,
// but not its cancellation.
//
// Errors: *HeldError (ErrHeld), *QuorumError (ErrNoQuorum) when too few nodes answered, *SlowError
// (ErrTimeout), *OptionError, ErrClosed, or ctx's own error. After an error nothing is held: what some nodes
// granted is released again in the background, also when ctx was cancelled.
func (q *Quorum) TryAcquire(ctx context.Context, key string, opts ...LeaseOption) (*Lease, error) {
	a, err := q.newAcquisition(key, opts)
	if err != nil {
		return nil, err
	}
	return a.traced(ctx, false, a.try)
}

// Acquire acquires the key as soon as nobody holds it, or returns when ctx ends. It does not poll a healthy
// holder: it wakes when the holder's release is announced, when the holder's keys expire, and about once a TTL in
// case the announcement was lost. Without a quorum of nodes it tries again within the bounds of WithRetry.
//
// Waiters queue: a release calls the one that has waited longest, of whatever process, and reserves the key for it for a moment. After a crash the
// first few come one after the other. That is fairness where the nodes are well, and no promise.
//
// Errors: ctx's own error (which also carries the last attempt's, for errors.As), *OptionError or ErrClosed.
func (q *Quorum) Acquire(ctx context.Context, key string, opts ...LeaseOption) (*Lease, error) {
	a, err := q.newAcquisition(key, opts)
	if err != nil {
		return nil, err
	}
	return a.traced(ctx, true, a.wait)
}

// acquisition is one call of TryAcquire or Acquire.
type acquisition struct {
	q        *Quorum
	keys     *keyset // names
	names    keyset
	cfg      leaseConfig
	attempts int
	votes    int
	unclear  bool          // the last split vote may have been a holder's
	freeIn   time.Duration // until enough of the refusing nodes' keys have expired, after a HeldError
	vacancy  vacancy       // of the key, as far as a waiter knows
	member   string        // of the queue; empty while it does not wait there
	rank     int           // how many wait before it, after a HeldError; -1 if that is not known
}

func (q *Quorum) newAcquisition(key string, opts []LeaseOption) (*acquisition, error) {
	keys, err := q.cfg.keyset(key)
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

func (a *acquisition) traced(ctx context.Context, wait bool, acquire func(context.Context) (*Lease, error)) (*Lease, error) {
	t := a.q.cfg.tracers.acquire
	if t == nil {
		return acquire(ctx)
	}
	ctx = t.TraceAcquireStart(ctx, TraceAcquireStartData{
		Key: a.keys.name, TTL: a.cfg.ttl, Nodes: len(a.q.nodes), Quorum: a.q.need, Wait: wait,
	})
	began := a.q.clock.Now()
	l, err := acquire(ctx)
	now := a.q.clock.Now()
	data := TraceAcquireEndData{Key: a.keys.name, Duration: now.Sub(began), Attempts: a.attempts, Votes: a.votes, Lease: l, Err: err}
	if l != nil {
		if v := a.vacancy; v.by != "" && v.since <= now {
			data.FreedBy, data.Vacant = v.by, now.Sub(v.since)
		}
		data.FencingToken = l.token
		data.Validity = l.remaining()
	}
	t.TraceAcquireEnd(ctx, data)
	return l, err
}

// try is one attempt: rounds until one is decided.
func (a *acquisition) try(ctx context.Context) (*Lease, error) {
	reconnected := false
	for splits := 0; ; {
		l, split, err := a.round(ctx)
		var pause time.Duration
		switch {
		case err == nil:
			return l, nil
		case split && splits < maxSplits && (!a.unclear || splits < maxUnclear):
			pause = fullJitter(splitPause << splits)
			splits++
		case !reconnected && brokenConnection(err):
			// Connections that broke while they were idle show it only now: ask again on new ones, as a
			// new owner.
			reconnected = true
		default:
			return nil, err
		}
		select {
		case <-time.After(max(pause, atOnce)):
		case <-ctx.Done():
			return nil, newContextError(ctx, a.keys.name, err)
		case <-a.q.done:
			return nil, ErrClosed
		}
	}
}

// brokenConnection reports whether a quorum failed and a node's connection was the reason.
func brokenConnection(err error) bool {
	var qe *QuorumError
	if !errors.As(err, &qe) || qe.Op != OpAcquire {
		return false
	}
	for _, e := range qe.Errs {
		if e.ErrorType() == "connection" {
			return true
		}
	}
	return false
}

// round asks every node once. split reports a vote that no owner won.
func (a *acquisition) round(ctx context.Context) (l *Lease, split bool, err error) {
	if ctx.Err() != nil {
		return nil, false, newContextError(ctx, a.keys.name, nil)
	}
	if !a.q.begin() {
		return nil, false, ErrClosed
	}
	settled := false // what is left to do for the round is somebody else's
	defer func() {
		if !settled {
			a.q.rounds.Done()
		}
	}()
	a.attempts++
	at := &attempt{keys: a.keys, owner: newOwner(a.cfg.identity), cfg: a.cfg, member: a.member}
	timeout := a.q.cfg.timeout(OpAcquire, a.cfg.ttl)
	start := a.q.clock.Now()
	rd := newRound(OpAcquire, len(a.q.nodes), a.q.need)
	rd.decided = a.certain
	a.q.broadcast(ctx, rd, at, &arguments{
		ttl:  a.q.texts.milliseconds(a.cfg.ttl),
		hint: strconv.FormatInt(time.Now().UnixMicro(), 10),
		skew: a.q.texts.skew,
	}, start.Add(timeout), nil)

	waited := rd.wait(ctx, timeout, &a.q.timers)
	o := rd.outcome()
	a.votes = o.agreed
	fail := func(err error) (*Lease, bool, error) {
		a.q.rollBack(ctx, at, o)
		return nil, false, err
	}
	if waited != nil {
		return fail(newContextError(ctx, a.keys.name, nil))
	}
	if !o.success || a.isCompleted(o) {
		err, split := a.refusal(o)
		a.q.takeBack(ctx, at, rd)
		settled = true
		return nil, split, err
	}
	token, err := a.agree(ctx, at, o, timeout)
	if err != nil {
		return fail(err)
	}
	if err := tooLate(a.keys.name, a.q.clock.Now().Sub(start), a.cfg.ttl); err != nil {
		return fail(err)
	}
	l = newLease(ctx, a.q, at, token, start, grantIn(o.replies))
	if l == nil {
		return fail(ErrClosed)
	}
	return l, false, nil
}

// tooLate refuses a grant with less than half of the TTL left. The timeouts of nodes keep rounds below that; a
// process that was paused in the middle of one is not bound by them.
func tooLate(key string, elapsed, ttl time.Duration) error {
	if elapsed > ttl/2 {
		return &SlowError{Key: key, Elapsed: elapsed, TTL: ttl}
	}
	return nil
}

// agree settles the fencing token: the largest that was granted, on a quorum of nodes. Nodes that granted a
// smaller one are asked to raise their counter, strictly: a node whose counter has reached the token meanwhile
// has it from another acquisition and does not count. An ambiguous answer counts as failed and is not repeated.
func (a *acquisition) agree(ctx context.Context, at *attempt, o outcome, timeout time.Duration) (uint64, error) {
	var token uint64
	for _, rep := range o.replies {
		if rep.verdict == agreed {
			token = max(token, rep.token)
		}
	}
	have := 0
	for _, rep := range o.replies {
		if rep.verdict == agreed && rep.token == token {
			have++
		}
	}
	if have >= a.q.need {
		return token, nil
	}
	// The round spans all nodes, so that replies keep their places; those not asked count as refusals.
	below := func(i int) bool { return o.replies[i].verdict == agreed && o.replies[i].token < token }
	rd := newRound(OpAgree, len(o.replies), a.q.need-have)
	for i := range o.replies {
		if !below(i) {
			rd.settle(i, reply{verdict: refused})
		}
	}
	a.q.broadcast(ctx, rd, at, &arguments{token: strconv.FormatUint(token, 10)}, a.q.clock.Now().Add(timeout), below)
	if rd.wait(ctx, timeout, &a.q.timers) != nil {
		return 0, newContextError(ctx, a.keys.name, nil)
	}
	if o := rd.outcome(); !o.success {
		err := a.q.quorumError(OpAgree, a.keys.name, o)
		err.Succeeded += have // those that were not asked, because they have the token
		return 0, err
	}
	return token, nil
}

// certain reports whether further answers cannot change how the round is taken: also as done, see WithOnce.
func (a *acquisition) certain(replies []reply) bool {
	if a.cfg.once != nil {
		if nodes, completed := done(replies, a.cfg.once.n); completed || nodes > len(replies)-a.q.need {
			return true
		}
	}
	return a.q.acquireCertain(replies)
}

// isCompleted reports whether a node knows that the sequence was completed. One is enough: a quorum has granted it then,
// also if those of this round have forgotten.
func (a *acquisition) isCompleted(o outcome) bool {
	if a.cfg.once == nil {
		return false
	}
	_, completed := done(o.replies, a.cfg.once.n)
	return completed
}

// acquireCertain reports whether further answers cannot change how an acquisition's round is taken: as granted, as a
// failure of too many nodes, as held by an owner who has a quorum, or as a vote that was split.
func (q *Quorum) acquireCertain(replies []reply) bool {
	granted, open := count(replies, agreed), count(replies, pending)
	switch {
	case granted >= q.need:
		return true
	case granted+open >= q.need:
		return false
	case count(replies, failed) > len(replies)-q.need:
		return true
	}
	_, most := leading(replies)
	return most >= q.need || most+count(replies, failed)+open < q.need
}

// leading returns the owner that most of the refusing nodes name, and how many do.
func leading(replies []reply) (owner string, nodes int) {
	for i, rep := range replies {
		if rep.verdict != refused || rep.record != nil {
			continue
		}
		same := 1
		for _, other := range replies[i+1:] {
			if other.verdict == refused && other.record == nil && other.owner == rep.owner {
				same++
			}
		}
		if same > nodes {
			owner, nodes = rep.owner, same
		}
	}
	return owner, nodes
}

// refusal explains a round without a quorum of grants: it was the nodes' fault if too many failed for any quorum, and
// somebody holds the key if not. The vote was split if no owner is seen on a quorum; if one may have it together with
// the nodes that did not answer, that is unclear.
func (a *acquisition) refusal(o outcome) (err error, split bool) {
	owner, nodes := leading(o.replies)
	silent := count(o.replies, failed)
	if o.expired {
		silent += count(o.replies, pending)
	}
	if a.cfg.once != nil {
		if known, completed := done(o.replies, a.cfg.once.n); completed || known > len(o.replies)-a.q.need {
			return a.doneError(o.replies), false
		} else if known > 0 && nodes == 0 && silent <= len(o.replies)-a.q.need {
			// Some were left behind by an attempt that failed, perhaps, and others split the rest.
			return a.doneError(o.replies), o.agreed > 0
		}
	}
	if nodes == 0 || silent > len(o.replies)-a.q.need {
		return a.q.quorumError(OpAcquire, a.keys.name, o), false
	}
	holder := Holder{Key: a.keys.name, Identity: ownerIdentity(owner), Nodes: nodes}
	for _, rep := range o.replies {
		if rep.verdict == refused && rep.owner == owner {
			holder.TTL = max(holder.TTL, rep.pttl)
		}
	}
	a.q.checkTTL(holder)
	a.freeIn, a.rank = a.untilFree(o), a.rankIn(o.replies)
	a.unclear = nodes < a.q.need && nodes+silent >= a.q.need
	if a.unclear {
		// What is in the way may be an attempt that is rolled back without a word.
		a.freeIn = min(a.freeIn, a.q.cfg.retryMax)
	}
	return &HeldError{Key: a.keys.name, Holder: holder, Sequence: heldSequence(o.replies, owner)}, nodes < a.q.need && (o.agreed > 0 || !a.unclear)
}

// heldSequence is the number that the owner was granted, as far as the nodes know that refused because of it.
func heldSequence(replies []reply, owner string) int64 {
	for _, rep := range replies {
		if rep.holds != nil && rep.holds.owner == owner {
			return rep.holds.granted
		}
	}
	return 0
}

// untilFree is when enough refusing nodes will have let their keys expire for a quorum to be had.
func (a *acquisition) untilFree(o outcome) time.Duration {
	var ttls []time.Duration
	for _, rep := range o.replies {
		if rep.verdict == refused && rep.record == nil {
			ttls = append(ttls, rep.pttl)
		}
	}
	wanted := min(max(a.q.need-o.agreed, 1), len(ttls))
	return nthSmallest(ttls, wanted)
}

// rankIn is how many wait before this one as a quorum of nodes knows it, or -1.
func (a *acquisition) rankIn(replies []reply) int {
	if a.member == "" {
		return -1
	}
	var ranks []int
	for _, rep := range replies {
		switch {
		case rep.verdict != refused || rep.record != nil:
		case rep.rank >= 0:
			ranks = append(ranks, rep.rank)
		case rep.rank == queueFull:
			ranks = append(ranks, maxRank+1)
		}
	}
	if len(ranks) < a.q.need {
		return -1
	}
	slices.Sort(ranks)
	return ranks[len(ranks)/2]
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
