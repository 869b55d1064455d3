package redlock

import (
	"context"
	"strconv"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// agree settles the fencing token on a quorum of nodes: the largest that was granted, or what the
// servers' clocks demand if that is larger. An attempt that gave no hint, because the clocks were
// not known, makes up for it here. Nodes that granted a smaller token are asked to raise it in the
// lock, and their counter. The raise is strict: a node whose lock has reached the token meanwhile
// has it from another acquisition and does not count. An ambiguous answer counts as failed and is
// not repeated.
func (a *acquisition) agree(ctx context.Context, granted *operation, timeout time.Duration) (uint64, error) {
	at, t := a.candidate, granted.Tally()
	now := a.q.clock.Now()
	a.q.clocks.Await(ctx, now, now.Add(timeout))
	now = a.q.clock.Now()
	token := a.q.clocks.LeastToken(now)
	if at.hint == noHint {
		token = max(token, uint64(a.q.clocks.Hint(now, clock.Wall())))
	}
	token = max(token, t.Token)
	text := strconv.FormatUint(token, 10)
	if text != at.hint {
		at.lock = wire.Lock(text, at.owner)
	}
	if t.Token == token && t.Same >= a.q.need {
		return token, nil
	}
	o, have := granted.Outcome(), 0
	for i := range o.Replies {
		if rep := &o.Replies[i]; rep.Verdict == wire.OK && rep.Token == token {
			have++
		}
	}
	if have >= a.q.need { // one more has answered meanwhile
		return token, nil
	}
	below := func(i int) bool { return o.Replies[i].Verdict == wire.OK && o.Replies[i].Token < token }
	rd := a.q.newOperation(OpAgree, a.q.need-have)
	defer rd.drop()
	call := at.call(wire.Agree)
	call.Hint = text
	rd.send(ctx, at, call, a.q.clock.Now().Add(timeout), rd.only(below))
	if rd.Wait(ctx, timeout) != nil {
		return 0, newContextError(ctx, a.keys.Name, nil)
	}
	if o := rd.Outcome(); !o.Success {
		err := a.q.quorumError(OpAgree, a.keys.Name, o)
		err.Succeeded += have // those that were not asked, because they have the token
		return 0, err
	}
	return token, nil
}
