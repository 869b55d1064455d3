package model

import "slices"

// Tokens, counters and hints are relative to now, so that a model without end has few states. Each
// tick lowers all of them by perTick, but not below floor. Every token that can still be granted is
// above floor, so its comparison with an older value does not depend on the age of that value.
const (
	hintLow  = -128 // a client that does not know the servers' clocks yet
	hintHigh = 127  // a client that takes their median for as high as it may be
)

// perTick is how far a clock goes in a tick. It is more than the number of grants, each of which
// raises a counter by one at least: a server can count faster than its clock only if it grants more
// than once in a microsecond.
const perTick = maxAttempts + 1

// floor returns the value of a wiped counter, and of every token that is too old to matter.
func (c *Config) floor() int8 {
	switch {
	case c.Defect == NoHint || c.NoClocks:
		return 0
	case c.Defect == HintTooLow:
		return int8(-perTick * (c.Validity + c.behind()))
	}
	return int8(-perTick * (c.Validity + c.Skew + 1))
}

// behind returns how many ticks a counter is behind that starts anew and that nothing lifts. This
// is more than any token is behind that was granted before the restart.
func (c *Config) behind() int { return c.Gate + c.Skew + 2 }

// aged returns a token as it is one tick later.
func (c *Config) aged(v int8) int8 {
	if c.Defect == NoHint {
		return v // no clock is involved: counters are what they are
	}
	return max(v-perTick, c.floor())
}

// median returns how many ticks the lower median of the servers' wall clocks is ahead. Each client
// knows the median, up to the skew, or knows nothing yet.
func (c *Config) median() int {
	if len(c.Skews) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(c.Skews))
	return int(sorted[(len(sorted)-1)/2])
}

// counted returns the counter that a node answers a grant with. The server holds a hint to its own
// clock.
func (p *protocol) counted(n *node, hint int8) int8 {
	if !p.Tokens {
		return 0
	}
	next, own := n.counter+1, int8(perTick*(int(n.skew)+p.Skew))
	switch {
	case p.Defect == NoHint || hint == hintLow:
		return next
	case hint == hintHigh && p.Defect == FastClockLeads:
		return max(next, own)
	case hint == hintHigh && p.Defect == HintTooHigh:
		return max(next, own+8*perTick)
	case hint == hintHigh:
		return max(next, min(own, int8(perTick*(p.middle+p.Skew))))
	}
	return max(next, min(own, int8(perTick*p.middle)))
}

// least returns the least token that can be granted now.
func (p *protocol) least() int8 {
	if !p.Tokens || p.NoClocks || p.Defect == NoHint || p.Defect == HintTooLow {
		return -128
	}
	return int8(perTick * (p.middle - p.Skew))
}

// forgetTokens raises tokens and counters that are too low to matter to one value, so that states
// that differ only in them become one.
//
// A token is at least what the clocks demand. A counter that is below that, and still is after the
// grants of a tick, does not matter to a later grant. Otherwise a counter is compared only with the
// token of an attempt that has the key and has not been granted the lease yet. An extension raises
// counters only to the token of its lease, which does not matter either if it is that low. The
// largest token granted so far is compared only with tokens that are still to be granted.
func (p *protocol) forgetTokens(t *state) {
	if p.Defect == NoHint || p.Defect == HintTooLow || p.SharedOwner || p.NoClocks {
		return // nothing is too low
	}
	lowest := p.least() - 1
	open := lowest // below every token that can still be granted
	for i := range p.Attempts {
		at := &t.attempts[i]
		switch at.phase {
		case agreeing:
			open = min(open, at.token-1)
		case acquiring, idle:
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
		nd.counter, nd.mine = max(nd.counter, p.lowestCounter()), max(nd.mine, p.lowestCounter())
	}
}

// lowestCounter returns the value that stands for all counters that are too low to matter.
func (p *protocol) lowestCounter() int8 { return max(p.least(), perTick-127) - perTick }
