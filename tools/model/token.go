package model

// Tokens, counters and clocks are relative to now, so that a model without end has few states. Each
// tick lowers all of them by perTick, but not below floor. Every token that can still be granted is
// above floor, so its comparison with an older value does not depend on the age of that value.

// perTick is how far a clock goes in a tick. It is small, so two clients that count up by one are a
// tick ahead of their clock; in a second they would have to count a million times. The second that
// the quarantine adds to a lease and the skew is for that. Where more is counted, the model's gate
// has a tick more than these two.
const perTick = 2

// floor returns the value of a wiped counter, and of every token that is too old to matter.
func (c *Config) floor() int8 {
	if c.uncounted() {
		return 0
	}
	return int8(-perTick * (c.Validity + c.Skew + 1))
}

// uncounted reports whether no clock is in the tokens: counters are what they are.
func (c *Config) uncounted() bool { return c.NoClocks || c.Defect == ClocksIgnored }

// aged returns a token as it is one tick later.
func (c *Config) aged(v int8) int8 {
	if c.uncounted() {
		return v
	}
	return max(v-perTick, c.floor())
}

// clocks returns the least and the largest token that a client may take the median of the servers'
// clocks for. It knows the median up to the skew.
func (c *Config) clocks() (from, to int8) {
	switch {
	case !c.Tokens || c.Defect == ClocksIgnored:
		return c.floor(), c.floor()
	case c.NoClocks:
		return c.Clocks[0], c.Clocks[1]
	}
	skew := int8(perTick * c.Skew)
	return c.Clocks[0] * skew, c.Clocks[1] * skew
}

// least returns the least token that the clocks allow to be granted now.
func (p *protocol) least() int8 {
	if !p.Tokens || p.uncounted() || p.Defect == NotChecked {
		return -128
	}
	return int8(-perTick * p.Skew)
}

// draws returns the proposals of a client that knows which value the counters have reached. A
// proposal is larger than that, and not less than the median of the clocks as the client knows it.
// It is not above that median, unless the client has seen a counter that is: then it is one more.
func (p *protocol) draws(s *state, reached int8) []int8 {
	if !p.Tokens {
		return []int8{0}
	}
	least, most := p.clocks()
	if p.Defect != SeenIgnored {
		least = max(least, reached+1)
		most = max(most, least, s.last+1)
		for n := range p.Nodes {
			most = max(most, s.nodes[n].counter+1)
		}
		for i := range p.Attempts {
			if at := &s.attempts[i]; at.phase == acquiring || at.phase == agreeing {
				most = max(most, at.token+1)
			}
		}
	}
	if p.Extremes && most > least {
		return []int8{least, most}
	}
	var drawn []int8
	for v := least; v <= most; v++ {
		drawn = append(drawn, v)
	}
	return drawn
}

// forgetTokens raises tokens and counters that are too low to matter to one value, so that states
// that differ only in them become one.
//
// A proposal that can still be granted is that of an attempt before its grant, or is drawn later
// and is then at least the lowest clock. All values below those are alike: each proposal that can
// be granted is above them, and they lift none.
func (p *protocol) forgetTokens(t *state) {
	if p.uncounted() || p.SharedOwner {
		return // nothing is too low
	}
	lowest, _ := p.clocks()
	for i := range p.Attempts {
		if at := &t.attempts[i]; at.phase == acquiring || at.phase == agreeing {
			lowest = min(lowest, at.token)
		}
	}
	lowest--
	for i := range p.Attempts {
		at := &t.attempts[i]
		at.first, at.token = max(at.first, lowest), max(at.token, lowest)
	}
	t.last = max(t.last, lowest)
	for n := range p.Nodes {
		t.nodes[n].counter = max(t.nodes[n].counter, lowest)
	}
}
