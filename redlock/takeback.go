package redlock

import (
	"context"
	"errors"
	"sync/atomic"
)

// takeBack frees what an attempt may have been granted that was refused, in the background. In contrast to rollBack it waits for the answers
// that are on their way: most are refusals too, after which there is nothing to free, and those who wait ask often. It ends the round for Close.
func (q *Quorum) takeBack(ctx context.Context, at *attempt, rd *round, rejoins bool) {
	at.ended.Store(true)
	u := &undo{q: q, at: at, ctx: q.detach(ctx), rejoins: rejoins}
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
	left atomic.Int64 // nodes that have not answered

	rejoins bool // it waits on
}

func (u *undo) ended(*round) {}

func (u *undo) late(_ *round, slot int, rep reply) {
	// What was abandoned has not been sent, but an earlier request of the same owner may have been.
	if rep.verdict == agreed || rep.verdict == failed && (u.at.again.Load() || !errors.Is(rep.err, errAbandoned)) { //mutant:rollback-of-grants-only,earlier-round-not-taken-back
		u.q.sendRelease(u.ctx, u.at, &arguments{keep: "0", record: recordUndo}, func(i int) bool { return i == slot }) //mutant:failed-attempt-keeps-its-number
	}
	if rep.verdict == agreed && u.rejoins { //mutant:rolled-back-place-lost
		u.q.rejoin(slot, u.at)
	}
	if u.left.Add(-1) == 0 {
		u.q.rounds.Done()
	}
}
