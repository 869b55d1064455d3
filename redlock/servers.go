package redlock

import (
	"context"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/clocks"
	"github.com/tenure-dev/tenure/redlock/internal/membership"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// newClocks compares the wall clocks of the servers, and logs which is wrong.
func (q *Quorum) newClocks(nodes int) *clocks.Clocks {
	return clocks.New(clocks.Config{Nodes: nodes, Need: q.need, Skew: q.cfg.skew, Judged: func(i int, why *wire.Fault) {
		log, ctx := q.cfg.logger, context.Background()
		if why == nil {
			log.InfoContext(ctx, "redlock: a server's clock is right again", "node", q.nodes[i].addr)
			return
		}
		log.WarnContext(ctx, "redlock: a server's clock is wrong", "node", q.nodes[i].addr, "reason", q.conditionError(why))
	}})
}

// newMembership has it decided which servers count for the Quorum.
func (q *Quorum) newMembership(nodes int) *membership.Membership {
	return membership.New(membership.Config{
		Nodes: nodes, Node: func(i int) membership.Node { return q.nodes[i] }, Need: q.need,
		Keys: &q.members, Identity: q.cfg.lease.identity, MaxTTL: q.cfg.maxTTL, Skew: q.cfg.clockSkew,
		RestartGate: q.cfg.restartGate, TakesPart: q.cfg.takesPart,
		Timeout: q.cfg.timeout(q.cfg.lease.ttl), LookEvery: q.cfg.inspectEvery(),
		Quarantine: q.cfg.quarantine, Lifetime: membership.Lifetime(q.cfg.quarantineFor(q.cfg.maxTTL, q.cfg.clockSkew)), Limits: &q.cfg.others,
		Clock: q.clock, Waits: &q.waits, Leads: q.clocks.LeadOfEach, Background: func(f func()) { q.later(f) }, Observer: peers{q},
	})
}

// peers hears what the Quorum's nodes know of other processes, and tells people.
type peers struct{ q *Quorum }

// Lead takes over what a node keeps of how far its clock is ahead.
func (p peers) Lead(i int, lead *time.Duration, now clock.Instant) { p.q.clocks.Tell(i, lead, now) }

// Unwritten keeps and logs that a node cannot keep who uses it, or can again.
func (p peers) Unwritten(i int, why *wire.Fault) {
	m, is, log := p.q.nodes[i], p.q.conditionError(why), p.q.cfg.logger
	m.unwritten.Store(is)
	if is == nil {
		log.Info("redlock: a node keeps who uses it again", "node", m.addr)
		return
	}
	log.Warn("redlock: a node cannot keep who uses it: a process with another list of nodes may not be noticed there", "node", m.addr, "reason", is)
}

// Longer logs that others use a longer TTL or skew.
func (p peers) Longer(why *wire.Fault) {
	p.q.cfg.logger.Info("redlock: a server that is restarted has no vote for longer than this process needs", "reason", p.q.conditionError(why))
}

// Differs keeps and logs how another process's list differs at a node.
func (p peers) Differs(i int, why *wire.Fault) {
	m, is := p.q.nodes[i], p.q.conditionError(why)
	was := m.differs.Swap(is)
	switch {
	case is != nil && (was == nil || is.Condition != was.Condition):
		p.q.cfg.logger.Error("redlock: processes do not agree on their nodes: two leases on a key may be live at once", "node", m.addr, "reason", is)
	case is == nil && was != nil:
		p.q.cfg.logger.Info("redlock: processes agree on their nodes again", "node", m.addr)
	default:
		return
	}
	m.tell()
}
