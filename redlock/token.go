package redlock

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// maxAgreements bounds how often one attempt asks nodes to raise its token.
const maxAgreements = 8

// saw notes a token of another process.
func (q *Quorum) saw(token uint64) {
	for last := q.largest.Load(); token > last && !q.largest.CompareAndSwap(last, token); last = q.largest.Load() {
	}
}

// draw returns a token to propose: at least that one, at least Clocks.Hint, and above all that this
// process has drawn or seen, so that it raises counters. What leads the clocks by more than usual
// may be of one key: it would lead the tokens of all keys, and is not noted.
//
// A process that does not know the clocks yet proposes next to nothing. What the clocks demand is
// settled when a quorum has granted, see agree.
func (q *Quorum) draw(least uint64) uint64 {
	hint := uint64(q.clocks.Hint(q.clock.Now(), clock.Wall()))
	usual := hint + uint64(q.clocks.UsualLead().Microseconds())
	if least > usual {
		return least
	}
	for {
		token, last := max(hint, least, 1), q.largest.Load()
		if token <= last && last < usual {
			token = last + 1
		}
		if q.largest.CompareAndSwap(last, token) {
			return token
		}
	}
}

// agree settles the fencing token. The proposed one counts if a quorum of the nodes that granted
// have raised their counters to it, and if it is what the servers' clocks demand. Otherwise the
// nodes that granted are asked to raise their counters, and the locks, to another one above all of
// them. Only a raise counts: a node that has the token already has it from another acquisition. If
// others raise the counter meanwhile, the next token is a random number above all, and farther each
// time: so one of many gets ahead of the others. An ambiguous answer counts as failed.
//
// split reports that others were faster each time. Then the attempt gives way, as in a split vote.
func (a *acquisition) agree(ctx context.Context, granted *operation, timeout time.Duration) (_ uint64, split bool, err error) {
	now := a.q.clock.Now()
	a.q.clocks.Await(ctx, now, now.Add(timeout))
	least := a.q.clocks.LeastToken(a.q.clock.Now())
	if t, token := granted.Tally(), a.candidate.token; t.Token == token && t.Same >= a.q.need && token >= least {
		return token, false, nil
	}
	for asked := 1; ; asked++ {
		o, began := granted.Outcome(), a.q.clock.Now()
		token := a.q.draw(max(least, above(o.Replies)))
		o, err := a.raise(ctx, o.Replies, token, timeout)
		if err != nil || o.Success {
			return token, false, err
		}
		if least = above(o.Replies); least <= token {
			return 0, false, a.q.quorumError(OpAgree, a.keys.Name, o)
		}
		if asked == maxAgreements {
			a.contest.note(o, began)
			return 0, true, a.q.quorumError(OpAgree, a.keys.Name, o)
		}
		least += rand.Uint64N(1 << (2 * asked))
	}
}

// above returns the least token that would raise the counters of all nodes that have answered.
func above(replies []vote.Reply) (token uint64) {
	for i := range replies {
		token = max(token, replies[i].Token)
	}
	return token
}

// raise asks the nodes that granted to raise their counters and locks to the token.
func (a *acquisition) raise(ctx context.Context, granted []vote.Reply, token uint64, timeout time.Duration) (vote.Outcome, error) {
	at := a.candidate
	at.propose(token)
	rd := a.q.newOperation(OpAgree, a.q.need)
	defer rd.drop()
	rd.send(ctx, at, at.call(wire.Agree), a.q.clock.Now().Add(timeout), rd.only(func(i int) bool { return granted[i].Verdict == wire.OK }))
	if rd.Wait(ctx, timeout) != nil {
		return vote.Outcome{}, newContextError(ctx, a.keys.Name, nil)
	}
	return rd.Outcome(), nil
}

// propose gives the attempt a token.
func (at *attempt) propose(token uint64) {
	at.token, at.lock = token, wire.Lock(strconv.FormatUint(token, 10), at.owner)
}
