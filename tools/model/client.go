package model

import "slices"

// clientSteps yields what an attempt may do next. Answers are not delivered one by one: a client
// that decides has received some of the answers that were given, and the others are under way or
// lost.
func (p *protocol) clientSteps(s *state, i int, yield yielder) {
	at := &s.attempts[i]
	switch at.phase {
	case idle:
		p.begin(s, i, yield)
	case acquiring:
		p.decide(s, i, yield)
		if p.AsksOn < 0 || int(s.attempts[i].asked) < p.AsksOn {
			p.askAgain(s, i, yield)
		}
		// Before there is a key to release, giving up only makes a place for another attempt.
		if p.replaceable(s) || p.holds(s, i) || p.exact {
			p.end(s, i, evFail, yield)
		}
	case agreeing:
		p.decide(s, i, yield)
		p.end(s, i, evFail, yield)
	case live:
		for n := range p.Nodes {
			if p.Extends {
				p.extendOn(s, i, n, yield)
				p.hear(s, i, n, yield)
			}
		}
		p.end(s, i, evRelease, yield)
	case lapsed:
		for n := range p.Nodes {
			p.hear(s, i, n, yield)
		}
	}
}

func (p *protocol) begin(s *state, i int, yield yielder) {
	if p.Starts > 0 && int(s.starts) >= p.Starts {
		return
	}
	for _, token := range p.draws(s, p.floor()-1) {
		t := *s
		t.attempts[i] = attempt{phase: acquiring, left: p.valid(), first: token, token: token}
		if p.NoClocks {
			t.attempts[i].since = s.last
		}
		for n := range p.Nodes {
			t.nodes[n].cells[i] = cell{}
			p.ask(&t, i, n, cmdPair)
		}
		if p.Starts > 0 {
			t.starts++
		}
		p.finish(&t, event{kind: evBegin, attempt: int8(i)}, yield)
	}
}

// ask sends a node the commands of an acquisition. Without tokens there is only one.
func (p *protocol) ask(t *state, i, n int, cmds command) {
	if !p.Tokens {
		cmds &= cmdSets
	}
	t.nodes[n].cells[i].queue |= cmds
}

// askAgain has an attempt that stays ask a node once more, as the same owner. The code asks in
// rounds, and asks all nodes that are not known to have granted. The model asks any node at any
// moment, which includes what the code does.
func (p *protocol) askAgain(s *state, i int, yield yielder) {
	for n := range p.Nodes {
		queue := s.nodes[n].cells[i].queue
		if queue&cmdAfter != 0 {
			continue
		}
		t, cmds := *s, cmdPair
		if queue&cmdPair != 0 {
			cmds = cmdAfter
		}
		p.ask(&t, i, n, cmds)
		if p.AsksOn > 0 {
			t.attempts[i].asked++
		}
		if p.Defect == CountFromLast {
			t.attempts[i].left = p.valid()
		}
		if cl := &t.nodes[n].cells[i]; p.Defect == UndoEarlier && cl.reply != noReply {
			cl.queue |= cmdRelease // behind the acquire that asks again
		}
		p.finish(&t, event{kind: evAskAgain, attempt: int8(i), node: int8(n)}, yield)
	}
}

// those returns the set of nodes whose cell is as told.
func (p *protocol) those(s *state, i int, is func(*cell) bool) (set uint) {
	for n := range p.Nodes {
		if is(&s.nodes[n].cells[i]) {
			set |= 1 << n
		}
	}
	return set
}

// decide grants the lease if a quorum granted and raised its counter to the last proposal. It also
// yields a second round for each set of grants that the client may have heard of.
func (p *protocol) decide(s *state, i int, yield yielder) {
	at := &s.attempts[i]
	got := p.those(s, i, func(c *cell) bool { return c.chosen || c.reply > early })
	have := p.those(s, i, func(c *cell) bool { return at.phase == acquiring && c.reply == raised || c.reply == settled })
	old := p.Tokens && at.token < p.least()
	enough := slices.Contains(p.quorums, have) && !old
	if p.Defect == TokenOnOne {
		enough = have != 0 && slices.Contains(p.quorums, got)
	}
	if enough {
		t := *s
		p.grant(&t, i, event{kind: evDecide, attempt: int8(i), arg: int8(have)}, yield)
	}
	if !p.Tokens || at.round > 0 && int(at.round) >= max(p.Rounds, 1) {
		return
	}
	for _, set := range p.quorums {
		if set&got == set {
			p.propose(s, i, set, yield)
		}
	}
}

// propose begins a second round on nodes that granted: it reads their counters, and draws a
// proposal that is larger. A counter that was read a while ago is lower, and its node would refuse.
func (p *protocol) propose(s *state, i int, set uint, yield yielder) {
	reached := s.attempts[i].token
	for n := range p.Nodes {
		if set>>n&1 == 1 {
			reached = max(reached, s.nodes[n].counter)
		}
	}
	for _, token := range p.draws(s, reached) {
		t := *s
		at := &t.attempts[i]
		at.phase, at.token = agreeing, token
		at.round++
		if p.Defect == SecondProves {
			at.left = p.valid()
		}
		for n := range p.Nodes {
			cl := &t.nodes[n].cells[i]
			mine := set>>n&1 == 1
			if p.Defect == Mixed && mine && cl.reply == raised {
				cl.chosen, cl.reply = true, settled
				continue
			}
			if cl.chosen = cl.chosen || mine; cl.reply > granted || mine {
				cl.reply = granted
			}
			if cl.queue &^= cmdAgree; mine {
				cl.queue |= cmdAgree
			}
		}
		p.finish(&t, event{kind: evPropose, attempt: int8(i), arg: int8(set)}, yield)
	}
}

// grant makes an attempt a lease. Each node that granted proves, whatever it raised.
func (p *protocol) grant(t *state, i int, e event, yield yielder) {
	at := &t.attempts[i]
	at.phase, at.round = live, 0
	if p.Defect == CountFromReply {
		at.left = p.valid()
	}
	for n := range p.Nodes {
		cl := &t.nodes[n].cells[i]
		if (cl.chosen || cl.reply > early) && p.proves() {
			cl.proof = at.left
		}
		cl.reply, cl.chosen = noReply, false
	}
	broken := p.exclusive(t)
	if p.Tokens {
		if p.looksAt(TokenOrder) && !p.inOrder(t, at) {
			broken = TokenOrder
		}
		t.last = max(t.last, at.token)
		if p.NoClocks {
			t.taken |= 1 << at.token
			at.since = 0
		}
	}
	p.conclude(t, e, broken, yield)
}

// extendOn sends an extension to a node: at most one in a tick, and none in the tick in which the
// acquisition began. The extension before must have been answered, or its connection must have
// broken. In the second case it may be carried out all the same, and its answer is not heard.
func (p *protocol) extendOn(s *state, i, n int, yield yielder) {
	cl := &s.nodes[n].cells[i]
	if p.proves() && (cl.sent == p.valid() || s.attempts[i].left == p.valid()) || cl.queue&cmdExtend != 0 && cl.queue&cmdStale != 0 {
		return
	}
	t := *s
	cl = &t.nodes[n].cells[i]
	if cl.queue&cmdExtend != 0 {
		cl.queue |= cmdStale
	}
	cl.queue |= cmdExtend
	cl.moved &^= cmdExtend
	if cl.reply = noReply; p.proves() {
		cl.sent = p.valid()
	}
	p.finish(&t, event{kind: evExtend, attempt: int8(i), node: int8(n)}, yield)
}

// hear takes a node's answer to an extension, however late it is.
func (p *protocol) hear(s *state, i, n int, yield yielder) {
	if s.nodes[n].cells[i].reply <= settled {
		return
	}
	t := *s
	e := event{kind: evHear, attempt: int8(i), node: int8(n)}
	p.conclude(&t, e, p.heard(&t, i, n), yield)
}

// heard applies the answer that a node has given to an extension. The answer proves that the node
// has had the key since the extension was sent, or it ends the proof of that node. heard returns
// the property that this breaks.
func (p *protocol) heard(t *state, i, n int) Property {
	at, cl := &t.attempts[i], &t.nodes[n].cells[i]
	denied := cl.reply == gone
	if cl.told = denied && p.Losses > 0; !denied {
		proof := cl.sent
		if p.Defect == ProofFromAnswer {
			proof = p.valid()
		}
		cl.proof = max(cl.proof, proof)
	} else if p.Defect != GoneIgnored {
		cl.proof = 0
	}
	cl.reply = noReply
	if cl.sent < p.valid() {
		cl.sent = 0
	}
	revived := at.phase == lapsed && p.deadline(t, i) > 0
	if revived {
		at.phase = live
	}
	p.lapse(t, i)
	switch {
	case revived && p.looksAt(LapsedStaysLapsed):
		return LapsedStaysLapsed
	default:
		return p.exclusive(t)
	}
}

// end ends an attempt: it gives up, or its lease is released or lost. The releases that it then
// sends may never arrive. Without clocks the step has no consequence, because a key may be gone at
// any moment.
func (p *protocol) end(s *state, i int, kind eventKind, yield yielder) {
	if p.NoClocks {
		return
	}
	t := *s
	p.stop(&t, i)
	p.finish(&t, event{kind: kind, attempt: int8(i)}, yield)
}

func (p *protocol) stop(t *state, i int) {
	t.attempts[i] = attempt{phase: ended, first: t.attempts[i].first, token: t.attempts[i].token}
	for n := range p.Nodes {
		cl := &t.nodes[n].cells[i]
		cl.reply, cl.chosen = noReply, false
		cl.sent, cl.proof, cl.told = 0, 0, false
		if p.NoStrays {
			cl.queue = 0
		}
		cl.queue |= cmdRelease
	}
}
