package redlock

import (
	"cmp"
	"context"
)

// failing returns why the node does not answer, or cannot be looked at. Nil while it works.
func (n *node) failing() *NodeError { return cmp.Or(n.trouble.Load(), n.lookTrouble.Load()) }

// report keeps how the last exchange went, and logs a line when the node starts or stops failing.
func (n *node) report(err error) {
	was := n.failing()
	n.trouble.Store(n.exchangeError(err))
	n.logFailing(was)
}

// reportLook keeps how the last look of the gate went. One that worked is an exchange that worked; the reverse does not
// hold, because a look needs a connection of its own.
func (n *node) reportLook(err error) {
	was := n.failing()
	n.lookTrouble.Store(n.exchangeError(err))
	if err == nil {
		n.trouble.Store(nil)
	}
	n.logFailing(was)
}

func (n *node) exchangeError(err error) *NodeError {
	if err == nil {
		return nil
	}
	return n.failure("exchange", err)
}

func (n *node) logFailing(was *NodeError) {
	switch is := n.failing(); {
	case was == nil && is != nil:
		n.q.cfg.logger.WarnContext(context.Background(), "redlock: node failing", "node", n.addr, "error", is.Err)
	case was != nil && is == nil:
		n.q.cfg.logger.InfoContext(context.Background(), "redlock: node answers again", "node", n.addr)
	}
}
