package model

import (
	"math/bits"
	"slices"
)

// protocol is the system that a configuration describes.
type protocol struct {
	Config
	quorums   []uint // the sets of nodes that are a quorum or more
	gateTicks int
	exact     bool // without the reductions, to test them
}

var _ system[state] = (*protocol)(nil)

type yielder func(e event, next *state, broken Property)

func newProtocol(c Config) *protocol {
	p := &protocol{Config: c, gateTicks: c.gate()}
	for set := range uint(1) << c.Nodes {
		if bits.OnesCount(set) >= c.quorum() {
			p.quorums = append(p.quorums, set)
		}
	}
	return p
}

// initial returns the state in which no attempt has the key, and every node votes.
func (p *protocol) initial() state {
	var s state
	for n := range p.Nodes {
		nd := &s.nodes[n]
		nd.age = uint8(p.gateTicks)
		if p.Tokens {
			nd.counter = p.floor()
		}
	}
	if p.Tokens {
		s.last = p.floor()
	}
	return s
}

func (p *protocol) steps(s *state, yield func(e event, next *state, broken Property)) {
	for i := range p.Attempts {
		p.clientSteps(s, i, yield)
		p.forget(s, i, yield)
		for n := range p.Nodes {
			if s.nodes[n].cells[i].queue != 0 {
				p.deliveries(s, i, n, yield)
			}
		}
	}
	for n := range p.Nodes {
		p.restart(s, n, yield)
		p.lose(s, n, yield)
		p.other(s, n, yield)
	}
	if !p.NoClocks {
		p.tick(s, yield)
	}
}

// tick lets a unit of time pass, for all nodes and attempts.
func (p *protocol) tick(s *state, yield yielder) {
	t := *s
	for n := range p.Nodes {
		nd := &t.nodes[n]
		if nd.left > 0 {
			if nd.left--; nd.left == 0 {
				nd.owner = 0
			}
		}
		if int(nd.age) < p.gateTicks {
			nd.age++
		}
		if p.Tokens {
			nd.counter = p.aged(nd.counter)
		}
	}
	if p.Tokens {
		t.last = p.aged(t.last)
	}
	for i := range p.Attempts {
		p.tickAttempt(&t, i)
	}
	p.finish(&t, event{kind: evTick}, yield)
}

func (p *protocol) tickAttempt(t *state, i int) {
	at := &t.attempts[i]
	if p.Tokens && at.phase != idle {
		at.first, at.token = p.aged(at.first), p.aged(at.token)
	}
	if at.phase != idle && at.phase != ended && at.left > 0 {
		at.left--
	}
	for n := range p.Nodes {
		cl := &t.nodes[n].cells[i]
		cl.proof = less(cl.proof)
		cl.sent = less(cl.sent)
		if cl.sent == 0 && (cl.reply == extended || cl.reply == refilled) {
			cl.reply = noReply // the answer proves nothing any more
		}
		if cl.queue&cmdExtend == 0 && cl.reply == noReply {
			cl.sent = 0
		}
	}
	switch at.phase {
	case acquiring, agreeing:
		if at.left == 0 {
			p.stop(t, i)
		}
	case live, lapsed:
		p.lapse(t, i)
	}
}

func less(ticks uint8) uint8 { return max(ticks, 1) - 1 }

// lapse ends a lease whose deadline has passed. The deadline is the Q-th largest proof of the
// nodes.
func (p *protocol) lapse(t *state, i int) {
	at := &t.attempts[i]
	switch {
	case p.deadline(t, i) > 0:
	case p.Defect == LateReply && p.awaits(t, i):
		at.phase = lapsed
	default:
		p.stop(t, i)
	}
}

// deadline returns for how many more ticks a lease is relied on. A lease that is not extended has
// only the proofs of its acquires, which are counted in left. Without clocks the number means
// nothing.
func (p *protocol) deadline(s *state, i int) uint8 {
	if !p.proves() {
		return s.attempts[i].left
	}
	need := p.quorum()
	if p.Defect == ProofTooFew {
		need--
	}
	var deadline uint8
	for n := range p.Nodes {
		proof, enough := s.nodes[n].cells[i].proof, 0
		for m := range p.Nodes {
			if s.nodes[m].cells[i].proof >= proof {
				enough++
			}
		}
		if enough >= need {
			deadline = max(deadline, proof)
		}
	}
	return deadline
}

// awaits reports whether an answer that would prove something is still to come.
func (p *protocol) awaits(s *state, i int) bool {
	return slices.ContainsFunc(s.nodes[:p.Nodes], func(n node) bool {
		return n.cells[i].sent > 0 && (n.cells[i].queue&cmdExtend != 0 || n.cells[i].reply > settled)
	})
}

// forget drops the commands in flight of an ended attempt that has no key, because they may never
// arrive. The attempt's place is then free for another.
func (p *protocol) forget(s *state, i int, yield yielder) {
	if s.attempts[i].phase != ended || !p.replaceable(s) || p.holds(s, i) {
		return
	}
	t := *s
	p.clear(&t, i)
	p.finish(&t, event{kind: evForget, attempt: int8(i)}, yield)
}

// replaceable reports whether more attempts may begin than there are places for.
func (p *protocol) replaceable(s *state) bool {
	return p.Starts == 0 || int(s.starts) < p.Starts && p.Starts > p.Attempts
}

func (p *protocol) clear(t *state, i int) {
	t.attempts[i] = attempt{}
	for n := range p.Nodes {
		t.nodes[n].cells[i] = cell{}
	}
}

// holds reports whether an attempt's key is on any node.
func (p *protocol) holds(s *state, i int) bool {
	return slices.ContainsFunc(s.nodes[:p.Nodes], func(n node) bool { return n.owner == p.owner(i) })
}

// finish yields the outcome of a step that breaks nothing by itself.
func (p *protocol) finish(t *state, e event, yield yielder) { p.conclude(t, e, none, yield) }

// conclude yields the outcome of a step, without the parts that have no consequences any more.
func (p *protocol) conclude(t *state, e event, broken Property, yield yielder) {
	for i := range p.Attempts {
		at := &t.attempts[i]
		if at.phase == idle {
			continue
		}
		var queued command
		for n := range p.Nodes {
			cl := &t.nodes[n].cells[i]
			if cl.queue&cmdPair == 0 && cl.queue&cmdAfter != 0 {
				cl.queue = cl.queue&^cmdAfter | cl.queue&cmdAfter>>2
			}
			if at.phase == ended && cl.queue&^cmdZadds == cmdRelease && t.nodes[n].owner != p.owner(i) &&
				p.Defect != NoCompare && !p.SharedOwner && !p.exact {
				cl.queue &^= cmdRelease // it would find another's key or none
			}
			if p.Tokens && !p.exact {
				p.dropRaises(&t.nodes[n], at, i)
			}
			queued |= cl.queue
			cl.moved &= cl.queue
			if left := t.clean(&p.Config, i, n); broken == none && p.looksAt(left) {
				broken = left
			}
		}
		if at.phase != acquiring {
			if at.asked = 0; queued&cmdZadds == 0 {
				at.first = 0
			}
		}
		if at.phase == live && queued&cmdSets == 0 && at.left < p.valid() && p.proves() {
			at.left = 0 // nothing counts from it any more
		}
		if at.phase == ended && queued&(cmdAgree|cmdStale|cmdExtend) == 0 {
			at.token = 0
			if queued == 0 && !p.holds(t, i) {
				*at = attempt{}
			}
		}
	}
	if p.NoClocks && !p.Extends && !p.exact {
		for n := range p.Nodes {
			if nd := &t.nodes[n]; nd.owner != 0 && t.attempts[nd.owner-1].phase == live {
				nd.owner, nd.left = 0, 0 // the key is in no attempt's way, and is never looked at
			}
		}
	}
	if p.Tokens && !p.exact {
		p.forgetTokens(t)
	}
	yield(e, t, broken)
}
