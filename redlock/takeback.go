package redlock

import (
	"context"
	"errors"
	"sync/atomic"
)

// next is what follows an attempt that came to nothing.
type next int

const (
	returns next = iota // it asks again soon
	sleeps              // it waits on, and keeps its place in the queues also of the nodes that had granted to it
	givesUp             // its caller has; see takingBack
)

// takeBack frees what an attempt may have been granted that was refused, in the background. In contrast to rollBack it waits for the answers
// that are on their way: most are refusals too, after which there is nothing to free, and those who wait ask often. It ends the round for Close.
func (q *Quorum) takeBack(ctx context.Context, at *attempt, rd *round, then next) {
	at.ended.Store(true)
	u := &undo{q: q, at: at, ctx: q.detach(ctx), then: then}
	u.left.Store(int64(len(q.nodes)))
	for _, a := range rd.leaveTo(u, func(*reply) bool { return true }) {
		u.late(rd, a.slot, a.reply)
	}
}

// undo goes on with the round of an attempt that was refused.
type undo struct {
	q    *Quorum
	at   *attempt
	ctx  context.Context
	then next
	left atomic.Int64 // nodes that have not answered
}

func (u *undo) ended(*round) {}

func (u *undo) late(_ *round, slot int, rep reply) {
	// What was abandoned has not been sent, but an earlier request of the same owner may have been.
	if rep.verdict == agreed || rep.verdict == failed && (u.at.again.Load() || !errors.Is(rep.err, errAbandoned)) { //mutant:rollback-of-grants-only,earlier-round-not-taken-back
		u.q.sendRelease(u.ctx, u.at, u.q.takingBack(u.at, u.then == givesUp), func(i int) bool { return i == slot })
	}
	if rep.verdict == agreed && u.then == sleeps && u.at.member != "" { //mutant:rolled-back-place-lost
		u.q.rejoin(slot, u.at)
	}
	if u.left.Add(-1) == 0 {
		u.q.rounds.Done()
	}
}
