package redlock

import (
	"cmp"
	"context"
	"errors"
)

// failing returns why the node does not answer, or cannot be looked at. Nil while it works.
func (n *node) failing() *NodeError { return cmp.Or(n.trouble.Load(), n.lookTrouble.Load()) }

// report keeps how the last exchange went, and logs a line when the node starts or stops failing.
func (n *node) report(err error) {
	if err == nil {
		n.answered.Store(true)
	}
	n.trouble.Store(n.exchangeError(err))
	n.logFailing()
}

// reportLook keeps how the last look of the gate went. One that worked is an exchange that worked;
// the reverse does not hold, because a look needs a connection of its own.
func (n *node) reportLook(err error) {
	n.lookTrouble.Store(n.exchangeError(err))
	if err == nil {
		n.answered.Store(true)
		n.trouble.Store(nil)
	}
	n.logFailing()
}

func (n *node) exchangeError(err error) *NodeError {
	if err == nil {
		return nil
	}
	e := n.failure("exchange", err)
	if n.answered.Load() && errors.Is(e.Err, ErrTimeout) {
		e.Err = &suspicion{e.Err, fellSilent} //mutant:silent-node-without-advice
	}
	return e
}

// logLacks logs a line when something begins or ends to suffer on a node that votes.
func (n *node) logLacks(was, is *ConditionError) {
	switch log := n.q.cfg.logger; {
	case is != nil && (was == nil || was.Detail != is.Detail):
		log.WarnContext(context.Background(), "redlock: node lacks what it should have", "node", n.addr, "reason", is)
	case is == nil && was != nil:
		log.InfoContext(context.Background(), "redlock: node lacks nothing any more", "node", n.addr)
	}
}

// logFailing logs a line when the node begins to fail, and from time to time while it lasts, and
// one when it answers again. That a connection ends on which it has answered before is no news by
// itself: a server closes those that are idle (timeout), or is restarted. The next exchange tells.
func (n *node) logFailing() {
	ctx, log, now := context.Background(), n.q.cfg.logger, n.q.clock.Now()
	is := n.failing()
	if is == nil {
		if n.outage.said {
			log.InfoContext(ctx, "redlock: node answers again", "node", n.addr, "after", n.outage.lasted(now))
		}
		n.outage, n.cut = reminder{}, false
		return
	}
	once := !n.cut && isCut(is.Err) && n.answered.Load() //mutant:idle-connection-is-an-outage
	n.cut = true
	switch {
	case once:
	case !n.outage.said:
		n.outage.begin(now)
		log.WarnContext(ctx, "redlock: node failing", "node", n.addr, "error", is.said())
	case n.outage.due(now): //mutant:outage-not-repeated
		log.WarnContext(ctx, "redlock: node still failing", "node", n.addr, "for", n.outage.lasted(now), "error", is.said())
	}
}
