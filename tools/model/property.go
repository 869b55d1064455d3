package model

// Property is what a protocol must have.
type Property string

// The properties.
const (
	none Property = ""
	// MutualExclusion: at most one lease is live. Where running nodes lose keys: no lease is live
	// beside another once N-Q+1 nodes have told it that they do not have its key.
	MutualExclusion Property = "mutual exclusion"
	// TokenOrder: a lease's token is greater than that of every lease granted before it. Without
	// clocks that cannot be had of attempts that overlap: one may learn late of what it was granted
	// early. Then a token must be greater than those granted before its attempt began, and none may
	// be granted twice.
	TokenOrder Property = "token order"
	// LapsedStaysLapsed: a lease whose deadline has passed is never live again.
	LapsedStaysLapsed Property = "a lapsed lease stays lapsed"
	// NothingLeft: when all that an ended attempt sent to a node has run there, its key is not
	// there.
	NothingLeft Property = "nothing is left"
	// OneLock: no two processes can have a lease each on nodes of which none is in both, once they
	// had a node in common. In the model of the roster only, as the next.
	OneLock Property = "two lists are no two locks"
	// FleetGoesOn: while a process is admitted, nothing is on its nodes of another list, but for a
	// process that they let begin, and for the lifetime after that could not take its ids back.
	FleetGoesOn Property = "the fleet goes on"
	// WhatStandsIsRead: whoever has read a register under a ballot has found every write that
	// stands under a lower one, and of two that stand one was read by the other. In the model of
	// the register only.
	WhatStandsIsRead Property = "what stands is read"
)

// looksAt reports whether a configuration has the property to hold.
func (c *Config) looksAt(p Property) bool {
	switch {
	case p == none || c.Only != none && c.Only != p:
		return false
	case p == MutualExclusion:
		return !c.NoClocks // it rests on them
	case p == NothingLeft:
		return !c.Unordered // it rests on the order
	default:
		return true
	}
}

// exclusive returns MutualExclusion if more than one lease is live. Where running nodes lose keys
// that cannot be had. Then one of them must have been told that too many nodes do not have its key.
func (p *protocol) exclusive(s *state) Property {
	holders, told := 0, p.Losses == 0
	for i := range p.Attempts {
		if s.attempts[i].phase == live {
			holders++
			told = told || p.told(s, i) > p.Nodes-p.quorum()
		}
	}
	if holders > 1 && told && p.looksAt(MutualExclusion) {
		return MutualExclusion
	}
	return none
}

// told is how many nodes have told an attempt that they do not have its key.
func (p *protocol) told(s *state, i int) (nodes int) {
	for n := range p.Nodes {
		if s.nodes[n].cells[i].told {
			nodes++
		}
	}
	return nodes
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
