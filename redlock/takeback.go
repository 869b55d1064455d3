package redlock

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/vote"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// takeBack frees, in the background, what an attempt that failed may have been granted. It waits
// for the answers that are on their way: most are refusals, after which there is nothing to free,
// and waiters ask often. With waitsOn the attempt's member gets its place in the queues back. The
// caller's cancellation does not reach it. When it has done it ends the round for Close.
func (q *Quorum) takeBack(ctx context.Context, at *attempt, waitsOn bool) {
	at.ended.Store(true)
	u := &undo{q: q, at: at, ctx: q.detach(ctx), waitsOn: waitsOn}
	u.left.Store(int32(len(q.nodes)))
	for _, a := range at.asked.LeaveTo(u, func(int, *vote.Reply) bool { return true }) {
		defer u.Late(a.Slot, a.Reply) // all of them, also if a tracer panics
	}
}

// undo goes on with the round of an attempt that failed.
type undo struct {
	q       *Quorum
	at      *attempt
	ctx     context.Context
	waitsOn bool

	left  atomic.Int32 // nodes that have not answered, or for which there is something left to do
	mu    sync.Mutex
	freed []int // guarded by mu; nodes that may have granted
}

func (u *undo) Late(slot int, rep *vote.Reply) {
	defer func() {
		if u.left.Add(-1) == 0 {
			u.q.rounds.Done()
		}
	}()
	// A request that was not sent was granted nothing, but an earlier request of the same owner may
	// have been sent.
	if rep.Verdict == wire.OK || rep.Verdict == wire.Failed && (u.at.times > 1 || !rep.Unsent) {
		u.free(slot, rep.Verdict == wire.OK)
	}
}

// free takes a node's grant back. If the grants may have been a quorum, free calls waiters, as a
// release does, also on the nodes that were freed before. A waiter that was told meanwhile that the
// key is held sleeps until the key would have expired. With fewer grants it calls no waiter:
// waiters would call each other without end.
//
// A grant has taken the attempt's member out of the node's queue. If it waits on, so does the
// release that takes the grant back, and the member joins again behind that, unless it has left.
// Otherwise the member keeps the place that it may have: it had one before, on a node that did not
// answer, or a later attempt has joined.
func (u *undo) free(slot int, granted bool) {
	u.mu.Lock()
	u.freed = append(u.freed, slot)
	freed := len(u.freed)
	slots := []int{slot}
	if freed == u.q.need {
		slots = slices.Clone(u.freed)
	}
	u.mu.Unlock()
	call := u.at.call(wire.Release)
	if call.Keep = "0"; freed >= u.q.need {
		call.Turn, call.Channel = u.at.cfg.turn, u.q.cfg.channel
	}
	if !granted || !u.waitsOn {
		call.Member = ""
	}
	u.q.sendRelease(u.ctx, u.at, call, func(i int) bool { return slices.Contains(slots, i) }).drop()
	if call.Member == "" {
		return
	}
	join := u.at.call(wire.Join)
	u.q.queue.While(u.at.member, func() {
		for _, i := range slots {
			u.q.nodes[i].Send(&node.Request{Call: &join, Expires: u.q.clock.Now().Add(u.at.cfg.ttl)})
		}
	})
}
