package redlock

import (
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/clocks"
	"github.com/tenure-dev/tenure/redlock/internal/membership"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// newClocks compares the wall clocks of the servers.
func (q *Quorum) newClocks(nodes int) *clocks.Clocks {
	return clocks.New(clocks.Config{Nodes: nodes, Need: q.need, Skew: q.cfg.skew})
}

// judgeClocks tells which clocks are wrong now.
func (q *Quorum) judgeClocks() {
	for i, m := range q.nodes {
		m.suffers(wrongClock, q.conditionError(q.clocks.Wrong(i)))
	}
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
func (p peers) Lead(i int, lead *time.Duration, now clock.Instant) {
	p.q.clocks.Tell(i, lead, now)
	p.q.judgeClocks()
}

// Unwritten tells that a node cannot keep who uses it, or can again.
func (p peers) Unwritten(i int, why *wire.Fault) { p.tell(unwritten, i, why) }

// Longer logs that others use a longer TTL or skew.
func (p peers) Longer(why *wire.Fault) {
	p.q.cfg.logger.Info("redlock: a server that is restarted has no vote for longer than this process needs", "reason", p.q.conditionError(why))
}

// Differs tells how another process's list differs at a node.
func (p peers) Differs(i int, why *wire.Fault) { p.tell(differing, i, why) }

func (p peers) tell(what trouble, i int, why *wire.Fault) {
	p.q.nodes[i].suffers(what, p.q.conditionError(why))
}
