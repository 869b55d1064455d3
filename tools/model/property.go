package model

// Property is a property that a protocol must have.
type Property string

// The properties.
const (
	none Property = ""
	// MutualExclusion: at most one lease is live. If running nodes lose keys, a lease may be live
	// beside another one until N-Q+1 nodes have told it that they do not have its key.
	MutualExclusion Property = "mutual exclusion"
	// TokenOrder: a lease's token is greater than the token of every lease granted before it.
	// Without clocks, attempts that overlap cannot keep that order: an attempt may learn late of an
	// early grant. Then a token must be greater than all tokens that were granted before its
	// attempt began, and no token may be granted twice.
	TokenOrder Property = "token order"
	// LapsedStaysLapsed: a lease whose deadline has passed is never live again.
	LapsedStaysLapsed Property = "a lapsed lease stays lapsed"
	// NothingLeft: when all commands of an ended attempt to a node have run there, the node does
	// not have its key.
	NothingLeft Property = "nothing is left"
	// OneLock: two processes whose lists have a node in common cannot each have a lease at the same
	// time on sets of nodes that are disjoint. Only the model of the roster has this property and
	// the next one.
	OneLock Property = "one lock"
	// FleetGoesOn: while a process is admitted, its nodes have no other list. There are two
	// exceptions: the list of a process that they let begin, and, for a lifetime after such a
	// process has ended, the list that it could not take back.
	FleetGoesOn Property = "the fleet goes on"
	// WhatStandsIsRead: a holder that has read a register under a ballot has found every write that
	// stands under a lower ballot. Of two writes that stand, one was read by the holder of the
	// other. Only the model of the register has this property.
	WhatStandsIsRead Property = "durability"
)

// looksAt reports whether the property must hold in a configuration, and is checked.
func (c *Config) looksAt(p Property) bool {
	switch {
	case p == none || c.Only != none && c.Only != p:
		return false
	case p == MutualExclusion:
		return !c.NoClocks // it rests on clocks
	case p == NothingLeft:
		return !c.Unordered // it rests on the order
	default:
		return true
	}
}

// exclusive returns MutualExclusion if more than one lease is live. If running nodes lose keys,
// that alone breaks nothing: one of these leases must also have been told by too many nodes that
// they do not have its key.
func (p *protocol) exclusive(s *state) Property {
	holders, told := 0, p.Losses == 0
	for i := range p.Attempts {
		if s.attempts[i].phase == live {
			holders++
			told = told || count(s.nodes[:p.Nodes], func(n *node) bool { return n.cells[i].told }) > p.Nodes-p.quorum()
		}
	}
	if holders > 1 && told && p.looksAt(MutualExclusion) {
		return MutualExclusion
	}
	return none
}

// clean returns NothingLeft if an ended attempt has left its key on the node.
func (s *state) clean(c *Config, i, n int) Property {
	cl := &s.nodes[n].cells[i]
	if s.attempts[i].phase == ended && cl.queue == 0 && s.nodes[n].owner == c.owner(i) {
		return NothingLeft
	}
	return none
}

// inOrder reports whether the token that an attempt is being granted keeps TokenOrder.
func (p *protocol) inOrder(s *state, at *attempt) bool {
	if p.NoClocks {
		return at.token > at.since && s.taken>>at.token&1 == 0
	}
	return at.token > s.last
}
