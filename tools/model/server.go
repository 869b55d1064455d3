package model

import "slices"

// deliveries yields what happens when a node runs an attempt's next command.
func (p *protocol) deliveries(s *state, i, n int, yield yielder) {
	queue := s.nodes[n].cells[i].queue
	for rest := queue; rest != 0; {
		cmd := rest & -rest
		if p.Defect == RaiseFirst && rest&cmdPair == cmdPair {
			cmd = cmdRaise
		}
		rest &^= cmd
		p.deliver(s, i, n, cmd, yield)
		if !p.Unordered && p.Defect != Overtaking {
			break
		}
	}
	// A command that is refused or lost changes nothing. It is the same as a command that is in
	// flight for ever, unless another command is waiting behind it.
	head := queue & -queue
	if head != queue && (s.attempts[i].phase == live || head&(cmdZadds|cmdAgree) != 0 || p.exact) {
		t := *s
		t.nodes[n].cells[i].queue &^= head
		p.finish(&t, event{kind: evLost, attempt: int8(i), node: int8(n), arg: int8(head)}, yield)
	}
}

// deliver runs a command.
func (p *protocol) deliver(s *state, i, n int, cmd command, yield yielder) {
	e := event{kind: evRun, attempt: int8(i), node: int8(n), arg: int8(cmd)}
	switch cmd {
	case cmdSet, cmdSetAgain:
		p.set(s, i, n, cmd, e, yield)
	case cmdRaise, cmdRaiseAgain:
		p.raise(s, i, n, cmd, e, yield)
	case cmdAgree:
		p.agree(s, i, n, e, yield)
	case cmdStale, cmdExtend:
		p.extend(s, i, n, cmd, e, yield)
	case cmdRelease:
		t := *s
		nd := &t.nodes[n]
		nd.cells[i].queue &^= cmd
		if nd.owner == p.owner(i) || p.Defect == NoCompare {
			nd.owner, nd.left = 0, 0
		}
		p.finish(&t, e, yield)
	}
}

// votes reports whether a node has been up for so long that clients vouch for it.
func (p *protocol) votes(n *node) bool { return int(n.age) >= p.gateTicks }

// counts reports whether the answer to a command counts. With the defect without, it always does.
func (p *protocol) counts(s *state, i, n int, cmd command, without Defect) bool {
	nd := &s.nodes[n]
	return p.votes(nd) || nd.cells[i].moved&cmd != 0 || p.Defect == without
}

// absent reports whether a node may have no key. A key may expire early by as much as the server's
// clock may be fast.
func (p *protocol) absent(n *node) bool { return n.owner == 0 || int(n.left) <= p.Drift || p.NoClocks }

// set grants an absent key. The attempt's own key is as good as the grant that the attempt has not
// heard of, but lives no longer. A grant that does not count sets the key all the same. A refusal
// changes nothing; it is a step only where a command is behind it.
func (p *protocol) set(s *state, i, n int, cmd command, e event, yield yielder) {
	nd, at := &s.nodes[n], &s.attempts[i]
	own := nd.owner == p.owner(i)
	got := func(t state, r reply) {
		cl := &t.nodes[n].cells[i]
		cl.queue &^= cmd
		switch {
		case !p.counts(s, i, n, cmd, GrantUnvouched):
		case at.phase == acquiring || at.phase == agreeing:
			if cl.reply == early {
				r = raised
			}
			cl.reply = max(cl.reply, r)
		case at.phase == live && p.proves(): // a late grant, which is heard or not
			if p.exact {
				p.finish(&t, e, yield)
			}
			cl.proof, cl.told = max(cl.proof, at.left), false
		}
		p.finish(&t, e, yield)
	}
	r := granted
	if !p.Tokens || own && p.Defect == OwnRaises {
		r = raised
	}
	if own {
		got(*s, r)
	}
	if p.absent(nd) {
		t := *s
		t.nodes[n].owner, t.nodes[n].left = p.owner(i), p.ttl()
		got(t, r)
	}
	if nd.owner != 0 && !own && p.exact {
		t := *s
		t.nodes[n].cells[i].queue &^= cmd
		p.finish(&t, event{kind: evRefused, attempt: e.attempt, node: e.node, arg: e.arg}, yield)
	}
}

// reaches reports whether a node's counter is raised to a proposal.
func (p *protocol) reaches(nd *node, token int8) bool {
	return nd.counter < token || nd.counter == token && p.Defect == NotStrict
}

// raise raises the counter to the first proposal, whoever has the key.
func (p *protocol) raise(s *state, i, n int, cmd command, e event, yield yielder) {
	t := *s
	nd, at := &t.nodes[n], &t.attempts[i]
	cl := &nd.cells[i]
	has := cl.reply == granted || cl.reply == noReply && p.Defect == RaiseFirst
	switch {
	case has && at.phase == acquiring && p.reaches(nd, at.first) && p.counts(s, i, n, cmd, RaiseUnvouched):
		if cl.reply == granted {
			cl.reply = raised
		} else {
			cl.reply = early
		}
	case !p.exact:
		return // see dropRaises
	}
	cl.queue &^= cmd
	nd.counter = max(nd.counter, at.first)
	p.finish(&t, e, yield)
}

// dropRaises drops the commands that would raise a counter and not count. A counter that is lower
// refuses less, so what breaks nothing without them breaks nothing with them. That a client may
// have seen what they raise is in draws, for attempts that have not ended.
func (p *protocol) dropRaises(nd *node, at *attempt, i int) {
	cl := &nd.cells[i]
	reaches := p.reaches(nd, at.token) || p.Defect == RaiseUnvouched || p.Defect == AgreeUnvouched
	switch {
	case at.phase != acquiring || cl.reply == raised || !reaches:
		cl.queue &^= cmdZadds
	case cl.reply < granted && cl.queue&cmdSet == 0 && p.Defect != RaiseFirst:
		cl.queue &^= cmdRaise // another had the key
	}
	if at.phase != agreeing || !reaches {
		cl.queue &^= cmdAgree
	}
}

// agree raises the counter to the proposal of a second round, whoever has the key.
func (p *protocol) agree(s *state, i, n int, e event, yield yielder) {
	token := s.attempts[i].token
	if !p.reaches(&s.nodes[n], token) {
		return
	}
	t := *s
	cl := &t.nodes[n].cells[i]
	cl.queue &^= cmdAgree
	t.nodes[n].counter = token
	if s.attempts[i].phase == agreeing && p.counts(s, i, n, cmdAgree, AgreeUnvouched) {
		cl.reply = settled
	}
	p.finish(&t, e, yield)
}

// extend runs an extension: it sets the TTL of the attempt's own key, and puts the key back if
// there is none. Otherwise the node may answer that it does not have the key; this answer counts
// from any node.
func (p *protocol) extend(s *state, i, n int, cmd command, e event, yield yielder) {
	nd := &s.nodes[n]
	at := &s.attempts[i]
	own := nd.owner == p.owner(i) || nd.owner != 0 && p.Defect == ExtendAny
	if own {
		t := *s
		tn := &t.nodes[n]
		tn.cells[i].queue &^= cmd
		tn.owner, tn.left = p.owner(i), p.ttl()
		p.answer(&t, i, n, cmd, extended, e, yield)
		if p.Tokens && p.exact && nd.counter < at.token {
			tn.counter = at.token // spreads the token, which not every extension does
			p.answer(&t, i, n, cmd, extended, e, yield)
		}
	}
	if p.absent(nd) {
		t := *s
		tn := &t.nodes[n]
		tn.cells[i].queue &^= cmd
		tn.owner, tn.left = p.owner(i), p.ttl()
		if p.exact {
			tn.counter = max(nd.counter, at.token)
		}
		e.kind = evRefill
		p.answer(&t, i, n, cmd, refilled, e, yield)
	}
	if (!own || p.absent(nd)) && cmd == cmdExtend && at.phase == live && p.proves() { // the extension may also stay in flight for ever
		t := *s
		t.nodes[n].cells[i].queue &^= cmd
		e.kind = evGone
		p.answer(&t, i, n, cmd, gone, e, yield)
	}
}

// answer has a node answer an extension. The attempt hears the answer at once, which is the worst
// case: the proof counts from the sending, so a lease that hears of it late never has more.
func (p *protocol) answer(after *state, i, n int, cmd command, r reply, e event, yield yielder) {
	t := *after
	cl := &t.nodes[n].cells[i]
	without := ExtendUnvouched
	if r == refilled {
		without = RefillUnvouched
	}
	if r != gone && !p.counts(&t, i, n, cmd, without) {
		p.finish(&t, e, yield)
		return
	}
	if cmd != cmdExtend || !p.proves() || t.attempts[i].phase != live && t.attempts[i].phase != lapsed {
		p.finish(&t, e, yield)
		return
	}
	late := p.exact || p.Defect == ProofFromAnswer || p.Defect == LateReply
	if late {
		lost := t
		p.finish(&lost, e, yield)
	}
	if cl.reply = r; late {
		p.finish(&t, e, yield)
		return
	}
	p.conclude(&t, e, p.heard(&t, i, n), yield)
}

// lose has a running node lose a key.
func (p *protocol) lose(s *state, n int, yield yielder) {
	if int(s.lost) >= p.Losses || s.nodes[n].owner == 0 {
		return
	}
	t := *s
	t.lost++
	t.nodes[n].owner, t.nodes[n].left = 0, 0
	p.finish(&t, event{kind: evLose, node: int8(n)}, yield)
}

// restart crashes a node and brings it back empty. A node that is down for a while is the same as a
// node that nothing reaches for a while. Commands in flight are lost, and a release is sent again.
// A command that was not written yet may be written to the new connection, inside the call that
// sent it. It then runs on the new process.
func (p *protocol) restart(s *state, n int, yield yielder) {
	if p.Restarts >= 0 && int(s.restarts) >= p.Restarts {
		return
	}
	t := *s
	nd := &t.nodes[n]
	nd.owner, nd.left, nd.age = 0, 0, 0
	if p.Tokens {
		nd.counter = p.floor()
	}
	if p.Restarts >= 0 {
		t.restarts++
	}
	for written := range uint(1) << p.Attempts {
		again, same := t, false
		for i := range p.Attempts {
			cl := &again.nodes[n].cells[i]
			if written>>i&1 == 0 {
				same = same || cl.queue&^cmdRelease == 0 // the same as if it had been written
				if p.Defect == BeforeOnly && p.votes(&s.nodes[n]) {
					cl.moved |= cl.queue
				}
			} else {
				cl.queue &= cmdRelease
			}
		}
		if !same {
			kind := evRestart
			if written != 1<<p.Attempts-1 {
				kind = evRestartSent
			}
			p.finish(&again, event{kind: kind, node: int8(n)}, yield)
		}
	}
}

// other has a node grant another key that shares the counter, or raise it in the second round of
// that key. The model has nothing else of that key. Its proposal is drawn like any other.
func (p *protocol) other(s *state, n int, yield yielder) {
	nd := &s.nodes[n]
	if int(s.others) >= p.Others {
		return
	}
	to := p.draws(s, nd.counter)
	if !slices.Contains(to, nd.counter+1) {
		to = append(to, nd.counter+1)
	}
	for _, v := range to {
		t := *s
		t.others++
		t.nodes[n].counter = v
		p.finish(&t, event{kind: evOther, node: int8(n)}, yield)
	}
}
