package model

// Tokens, counters and hints are relative to now, so that a model without end has few states: each tick lowers all of
// them by perTick. They do not fall below floor. Every hint is above it, and so is every token that can still be granted:
// whether one is above a counter or a token as old as that does not depend on how old that is.
const (
	hintLow  = -128 // a client whose clock is far behind
	hintHigh = 127  // a client whose clock is far ahead
)

// perTick is how far a clock goes in a tick. It is more than the number of grants, each of which raises a counter by one
// at least: a server can count faster than its clock only if it grants more than once in a microsecond.
const perTick = maxAttempts + 1

// floor is what a wiped counter is, and every token that is too old to matter.
func (c *Config) floor() int8 {
	switch {
	case c.Defect == NoHint || c.NoClocks:
		return 0
	case c.Defect == HintTooLow:
		return int8(-perTick * (c.Validity + c.behind()))
	}
	return int8(-perTick * (c.Validity + c.Skew + 1))
}

// behind is how far behind a client's clock is that nothing holds back: more than what was granted before a restart is.
func (c *Config) behind() int { return c.Gate + c.Skew + 2 }

// aged returns a token as it is one tick later.
func (c *Config) aged(v int8) int8 {
	if c.Defect == NoHint {
		return v // no clock is involved: counters are what they are
	}
	return max(v-perTick, c.floor())
}

// counted returns the counter that a node answers a grant with.
func (c *Config) counted(n *node, hint int8) int8 {
	if !c.Tokens {
		return 0
	}
	next := n.counter + 1
	lo, hi := int8(perTick*(int(n.skew)-c.Skew)), int8(perTick*(int(n.skew)+c.Skew))
	switch {
	case c.Defect == NoHint:
		return next
	case hint == hintLow && c.Defect == HintTooLow:
		return max(next, int8(perTick*(int(n.skew)-c.behind())))
	case hint == hintHigh && c.Defect == HintTooHigh:
		return max(next, hi+8*perTick)
	}
	return max(next, lo, min(hi, hint))
}

// forgetTokens raises what is too low to matter to one value, so that states that differ in it become one. A grant's counter
// is at least what the hint is at least. So a counter below that is of no account to a later grant; it is compared otherwise only
// with the token of an attempt that has the key and has not been granted yet. An extension raises counters only to the
// token of its lease, which is of no account either when it is below. And the largest token granted so far is compared only with those
// that are still to be granted.
func (p *protocol) forgetTokens(t *state) {
	if p.Defect == NoHint || p.Defect == HintTooLow || p.SharedOwner || p.NoClocks {
		return // nothing is too low
	}
	lowest := int8(127)
	for n := range p.Nodes {
		lowest = min(lowest, p.leastHint(&t.nodes[n]))
	}
	lowest--
	open := lowest // below every token that can still be granted
	for i := range p.Attempts {
		at := &t.attempts[i]
		switch at.phase {
		case agreeing:
			open = min(open, at.token-1)
		case acquiring:
			for n := range p.Nodes {
				if cl := &t.nodes[n].cells[i]; cl.reply == granted {
					open = min(open, cl.value-1)
				}
			}
		case idle:
		default:
			if at.token != 0 || at.phase == live {
				at.token = max(at.token, lowest)
			}
		}
	}
	t.last = max(t.last, open)
	for n := range p.Nodes {
		nd := &t.nodes[n]
		if nd.owner != 0 {
			if ph := t.attempts[nd.owner-1].phase; ph == acquiring || ph == agreeing {
				continue
			}
		}
		nd.counter = max(nd.counter, p.leastHint(nd)-1)
	}
}

// leastHint is what a grant's counter is at least.
func (c *Config) leastHint(n *node) int8 { return int8(perTick * (int(n.skew) - c.Skew)) }
