package model

import "slices"

// Tokens, counters and clocks are relative to now, so that a model without end has few states. Each
// tick lowers all of them by perTick, but not below floor. Every token that can still be granted is
// above floor, so its comparison with an older value does not depend on the age of that value.

// perTick is how far a clock goes in a tick. It is more than the number of attempts, each of which
// raises a counter by one at least: clients can count faster than the clock only if they propose
// more than once in a microsecond.
const perTick = maxAttempts + 1

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

// clocks returns what a client may take the median of the servers' clocks for: it knows the median
// up to the skew.
func (c *Config) clocks() []int8 {
	switch {
	case !c.Tokens || c.Defect == ClocksIgnored:
		return []int8{c.floor()}
	case c.NoClocks:
		return c.Clocks
	}
	var known []int8
	for _, skews := range c.Clocks {
		known = append(known, int8(perTick*c.Skew)*skews)
	}
	if c.Defect == OneClock {
		known = append(known, int8(perTick*3*c.Skew))
	}
	return known
}

// least returns the least token that the clocks allow to be granted now.
func (p *protocol) least() int8 {
	if !p.Tokens || p.uncounted() || p.Defect == OldProposal {
		return -128
	}
	return int8(-perTick * p.Skew)
}

// draws returns the proposals that a client may make which knows that counters have reached a
// value: the median of the clocks as it knows it, or one more than a counter that it has seen.
func (p *protocol) draws(s *state, reached int8) []int8 {
	if !p.Tokens {
		return []int8{0}
	}
	var drawn []int8
	draw := func(v int8) {
		if !slices.Contains(drawn, v) {
			drawn = append(drawn, v)
		}
	}
	for _, clock := range p.clocks {
		least := max(clock, reached+1)
		if p.Defect == SeenIgnored {
			draw(clock)
			continue
		}
		draw(least)
		draw(max(least, s.last+1))
		for i := range p.Attempts {
			if at := &s.attempts[i]; at.phase == acquiring || at.phase == agreeing {
				draw(max(least, at.token))
				draw(max(least, at.token+1))
			}
		}
		for n := range p.Nodes {
			if p.exact || p.Others > 0 {
				draw(max(least, s.nodes[n].counter+1))
			}
		}
	}
	return drawn
}

// forgetTokens raises tokens and counters that are too low to matter to one value, so that states
// that differ only in them become one.
//
// A proposal that can still be granted is that of an attempt before its grant, or is drawn later and
// is then at least the lowest clock. All values below those are alike: each proposal that can be
// granted is above them, and they lift none.
func (p *protocol) forgetTokens(t *state) {
	if p.uncounted() || p.SharedOwner {
		return // nothing is too low
	}
	lowest := slices.Min(p.clocks)
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
