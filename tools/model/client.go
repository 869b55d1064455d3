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
		p.decideToken(s, i, yield)
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

// send puts a command into a queue. The command is blind if the client does not vouch for the node
// then. A client vouches for a node as soon as the node has been up for long enough. To vouch later
// adds nothing, because a client may ignore an answer that counts.
func (p *protocol) send(t *state, i, n int, cmd command) {
	cl := &t.nodes[n].cells[i]
	cl.queue |= cmd
	if cl.blind &^= cmd; !p.votes(&t.nodes[n]) {
		cl.blind |= cmd
	}
}

func (p *protocol) begin(s *state, i int, yield yielder) {
	if p.Starts > 0 && int(s.starts) >= p.Starts {
		return
	}
	for _, hint := range p.hints {
		t := *s
		t.attempts[i] = attempt{phase: acquiring, left: p.valid(), hint: hint}
		if p.NoClocks {
			t.attempts[i].since = s.last
		}
		for n := range p.Nodes {
			t.nodes[n].cells[i] = cell{}
			p.send(&t, i, n, cmdAcquire)
		}
		if p.Starts > 0 {
			t.starts++
		}
		yield(event{kind: evBegin, attempt: int8(i), arg: hint}, &t, none)
	}
}

// askAgain has an attempt that stays ask a node once more, as the same owner. The code asks in
// rounds, and asks all nodes that are not known to have granted. The model asks any node at any
// moment, which includes what the code does.
func (p *protocol) askAgain(s *state, i int, yield yielder) {
	for n := range p.Nodes {
		queue := s.nodes[n].cells[i].queue
		if queue&cmdAgain != 0 {
			continue
		}
		t := *s
		cl := &t.nodes[n].cells[i]
		if queue&cmdAcquire == 0 {
			p.send(&t, i, n, cmdAcquire)
		} else {
			p.send(&t, i, n, cmdAgain)
		}
		if p.AsksOn > 0 {
			t.attempts[i].asked++
		}
		if p.Defect == CountFromLast {
			t.attempts[i].left = p.valid()
		}
		if p.Defect == UndoEarlier && cl.reply == granted {
			cl.queue |= cmdRelease // behind the acquire that asks again
		}
		p.finish(&t, event{kind: evAskAgain, attempt: int8(i), node: int8(n)}, yield)
	}
}

// answered returns the set of nodes whose reply is a or b.
func (p *protocol) answered(s *state, i int, a, b reply) uint {
	var set uint
	for n := range p.Nodes {
		if r := s.nodes[n].cells[i].reply; r == a || r == b {
			set |= 1 << n
		}
	}
	return set
}

// decide yields a choice for each quorum among the grants. A client goes on as soon as it has a
// quorum, so it never chooses more nodes than that.
func (p *protocol) decide(s *state, i int, yield yielder) {
	got := p.answered(s, i, granted, granted)
	for _, set := range p.quorums {
		if set&got != set {
			continue
		}
		p.choose(s, i, set, p.least(), yield)
		if p.NoClocks {
			for _, least := range p.Hints { // the clocks may demand anything
				p.choose(s, i, set, least, yield)
			}
		}
	}
}

// choose makes the largest counter among a quorum the token, unless the clocks demand a larger one.
func (p *protocol) choose(s *state, i int, set uint, token int8, yield yielder) {
	for n := range p.Nodes {
		if set>>n&1 == 1 {
			token = max(token, s.nodes[n].cells[i].value)
		}
	}
	e := event{kind: evDecide, attempt: int8(i), arg: int8(set)}
	t := *s
	t.attempts[i].token = token
	below := false
	for n := range p.Nodes {
		cl := &t.nodes[n].cells[i]
		mine := set>>n&1 == 1
		behind := mine && cl.value < token
		cl.reply, cl.value = noReply, 0
		if !mine {
			continue
		}
		cl.chosen = true
		if behind {
			below = true
			p.send(&t, i, n, cmdAgree)
		} else {
			cl.reply = settled
		}
	}
	if !below || p.Defect == NoAgreement {
		p.grant(&t, i, e, yield)
		return
	}
	t.attempts[i].phase = agreeing
	p.finish(&t, e, yield)
}

// decideToken grants the lease when all chosen nodes have the token.
func (p *protocol) decideToken(s *state, i int, yield yielder) {
	if !slices.ContainsFunc(s.nodes[:p.Nodes], func(n node) bool { return n.cells[i].chosen && n.cells[i].reply != settled }) {
		t := *s
		p.grant(&t, i, event{kind: evAgreed, attempt: int8(i)}, yield)
	}
}

func (p *protocol) grant(t *state, i int, e event, yield yielder) {
	at := &t.attempts[i]
	at.phase = live
	if p.Defect == CountFromReply {
		at.left = p.valid()
	}
	for n := range p.Nodes {
		cl := &t.nodes[n].cells[i]
		cl.queue &^= cmdAgree
		if cl.chosen && p.proves() {
			cl.proof = at.left
		}
		cl.reply, cl.chosen, cl.value = noReply, false, 0
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
	p.send(&t, i, n, cmdExtend)
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
	t.attempts[i] = attempt{phase: ended, hint: t.attempts[i].hint, token: t.attempts[i].token}
	for n := range p.Nodes {
		cl := &t.nodes[n].cells[i]
		cl.reply, cl.chosen, cl.value = noReply, false, 0
		cl.sent, cl.proof, cl.told = 0, 0, false
		if p.NoStrays {
			cl.queue = 0
		}
		cl.queue |= cmdRelease
	}
}
