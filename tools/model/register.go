package model

// The model of the register of package internal/register. Holders with ballots read the register
// and write it twice, at any moment and independently of each other, on nodes that are emptied and
// restored. Leases are left out, so any holder may be stale.
//
// A command in flight to a node is carried out once, at any time, in any order, or never. Its
// answer counts in the round that is under way. Late answers add nothing. A late answer to a read
// is the same as a read that is in flight for ever, which forbids less. A holder that has a quorum
// of answers to a write need not see them. A write that is repeated is in flight again, and begins
// a round.
//
// Time passes in ticks: a round has a few, and a node that was restarted does not vote for a few. A
// restart loses what the node knows, and the commands in flight to it, which were for the process
// before. Rule 9, texts of earlier processes, and how long nodes keep a register are left out.

// regValue is the content of a write: its ballot, its step, and the holder that wrote it.
type regValue struct{ ballot, step, by uint8 }

// isAfter reports whether v was written after w: by the ballot, then by the step.
func (v regValue) isAfter(w regValue) bool {
	return v.ballot > w.ballot || v.ballot == w.ballot && v.step > w.step
}

// regState is everything at one moment.
type regState struct {
	nodes    [maxNodes]regNode
	holders  [regHolders]regHolder
	restore  regRestore
	plain    regPlain
	restarts uint8
}

type regNode struct {
	known   bool
	age     uint8 // ticks since the restart, up to the gate
	promise uint8
	has     regValue
	cells   [regHolders]regCell
	target  bool // the node is the target of the restoration
	read    bool // the restoration has read the node
	heard   bool // the plain read has heard the node
}

// regCell is the commands in flight from a holder to a node, and the node's answers to it.
type regCell struct {
	asked     bool    // a read is in flight
	empties   bool    // a restoration as empty is in flight, and a read behind it
	writes    [3]bool // the writes of steps 1 and 2 are in flight
	unknowing bool    // the node answered the read that it does not know, and has not restarted since
	counted   bool    // the node's answer counts in the round under way
}

type regHolder struct {
	phase        regPhase
	left         uint8 // ticks of its round
	isRead, over bool
	saw          regValue // what it has read
	stood        uint8    // the last step that a quorum took
}

type regPhase uint8

const (
	regIdle regPhase = iota
	regReading
	regFirst
	regSecond // the step that is written is the phase less regReading
)

type registers struct{ RegisterConfig }

var _ system[regState] = registers{}

func (p registers) initial() regState {
	var s regState
	for n := range p.Nodes {
		s.nodes[n] = regNode{known: !p.New, age: uint8(p.Gate)}
	}
	return s
}

func (p registers) votes(n *regNode) bool { return int(n.age) >= p.Gate }

// The kinds of steps, with $a for the holder and $n for the node.
const (
	regTick     eventKind = "a tick passes"
	regBegin    eventKind = "$a asks all nodes"
	regRead     eventKind = "$n is read by $a"
	regDecide   eventKind = "$a has read, and writes"
	regEmpty    eventKind = "$a has all restored as empty"
	regEmptied  eventKind = "$n is restored as empty for $a"
	regTake     eventKind = "$n is written by $a"
	regStand    eventKind = "the write of $a stands"
	regAgain    eventKind = "$a writes again"
	regGiveUp   eventKind = "the restoration is given up"
	regRestart  eventKind = "$n crashes and comes back"
	regRestore1 eventKind = "a restoration is begun for $n"
	regSource   eventKind = "the restoration reads $n"
	regRestored eventKind = "the restoration is written to $n"
	regAsk      eventKind = "a plain read begins"
	regHear     eventKind = "the plain read hears $n"
)

type regYield func(kind eventKind, who, node int, next *regState, broken Property)

func (p registers) steps(s *regState, yield func(e event, next *regState, broken Property)) {
	out := func(kind eventKind, who, node int, next *regState, broken Property) {
		yield(event{kind: kind, attempt: int8(who), node: int8(node)}, next, broken)
	}
	for h := range p.Holders {
		p.holderSteps(s, h, out)
		for n := range p.Nodes {
			if p.votes(&s.nodes[n]) {
				p.nodeSteps(s, h, n, out)
			}
		}
	}
	if p.Restores {
		p.restoreSteps(s, out)
	}
	if p.Plain && !s.plain.done {
		p.plainSteps(s, out)
	}
	for n := range p.Nodes {
		if int(s.restarts) < p.Restarts {
			t := *s
			t.restarts++
			p.restart(&t, n)
			out(regRestart, 0, n, &t, none)
		}
	}
	t := *s
	for n := range p.Nodes {
		if nd := &t.nodes[n]; !p.votes(nd) {
			nd.age++
		}
	}
	for h := range p.Holders {
		ho := &t.holders[h]
		if ho.left > 0 {
			if ho.left--; ho.left == 0 {
				p.giveUp(&t, h)
			}
		}
	}
	out(regTick, 0, 0, &t, none)
}

// round begins a round.
func (p registers) round(t *regState, h int) {
	t.holders[h].left = uint8(p.Round)
	for n := range p.Nodes {
		t.nodes[n].cells[h].counted = false
	}
}

// giveUp ends a round. A holder that is still reading is over. Commands in flight stay in flight.
func (p registers) giveUp(t *regState, h int) {
	p.round(t, h)
	t.holders[h].left = 0
	if t.holders[h].over = t.holders[h].phase == regReading; t.holders[h].over {
		for n := range p.Nodes {
			t.nodes[n].cells[h].unknowing = false
		}
	}
}

// send sends a holder's write to all nodes, in a new round.
func (p registers) send(t *regState, h int) {
	p.round(t, h)
	for n := range p.Nodes {
		t.nodes[n].cells[h].writes[t.holders[h].phase-regReading] = true
	}
}

func (p registers) holderSteps(s *regState, h int, out regYield) {
	ho := &s.holders[h]
	counted := count(s.nodes[:p.Nodes], func(n *regNode) bool { return n.cells[h].counted })
	unknowing := count(s.nodes[:p.Nodes], func(n *regNode) bool { return n.cells[h].unknowing })
	t := *s
	to := &t.holders[h]
	begin := func(broken Property) { // to write
		to.phase, to.isRead = regFirst, true
		p.send(&t, h)
		out(regDecide, h, 0, &t, broken)
	}
	switch {
	case ho.over:
	case ho.phase == regIdle && p.Defect == RegWrittenUnread:
		begin(p.readBy(s, h))
	case ho.phase == regIdle:
		to.phase = regReading
		p.round(&t, h)
		for n := range p.Nodes {
			t.nodes[n].cells[h].asked = true
		}
		out(regBegin, h, 0, &t, none)
	case ho.left == 0 && p.Repeats: // the round is over
		p.send(&t, h)
		out(regAgain, h, 0, &t, none)
	case ho.phase == regReading && (counted >= p.needs(RegFewRead) ||
		p.New && counted == 0 && unknowing >= p.quorum() && p.Defect == RegNewAtOnce):
		begin(p.readBy(s, h))
	case ho.phase == regReading && p.New && counted == 0 && unknowing >= p.quorum():
		for n := range p.Nodes {
			if c := &t.nodes[n].cells[h]; c.unknowing {
				c.unknowing, c.empties = false, true
			}
		}
		out(regEmpty, h, 0, &t, none)
	case ho.phase >= regFirst && counted >= p.needs(RegFewWritten):
		to.stood = uint8(ho.phase - regReading)
		p.giveUp(&t, h)
		if to.over = ho.phase == regSecond || p.Once; !to.over {
			to.phase = regSecond
			p.send(&t, h)
		}
		out(regStand, h, 0, &t, p.stands(s, h, uint8(ho.phase-regReading)))
	}
}

// readBy returns WhatStandsIsRead if a holder that has read missed a write that stands under a
// lower ballot.
func (p registers) readBy(s *regState, h int) Property {
	for g := range p.Holders {
		v := regValue{p.ballot(g), s.holders[g].stood, uint8(g)}
		saw := s.holders[h].saw
		if g != h && v.step > 0 && v.ballot < p.ballot(h) && (v.isAfter(saw) || !saw.isAfter(v) && v.by != saw.by) {
			return WhatStandsIsRead
		}
	}
	return none
}

// stands returns WhatStandsIsRead if a write must not stand: a holder with a higher ballot has read
// and missed it, or another write with the same ballot stands.
func (p registers) stands(s *regState, h int, step uint8) Property {
	v := regValue{p.ballot(h), step, uint8(h)}
	for g := range p.Holders {
		ho := &s.holders[g]
		switch {
		case g == h || !ho.isRead || p.ballot(g) < v.ballot:
		case p.ballot(g) == v.ballot && ho.stood > 0, p.ballot(g) > v.ballot && v.isAfter(ho.saw):
			return WhatStandsIsRead
		}
	}
	return none
}

// nodeSteps yields what happens when a node carries out a command in flight from a holder. The
// answer counts, or is late.
func (p registers) nodeSteps(s *regState, h, n int, out regYield) {
	nd, c, ho := &s.nodes[n], &s.nodes[n].cells[h], &s.holders[h]
	ballot := p.ballot(h)
	reading := ho.phase == regReading && !ho.over
	if c.empties {
		t := *s
		to := &t.nodes[n]
		if to.cells[h].empties, to.cells[h].asked = false, true; !nd.known {
			to.known, to.promise, to.has = true, 0, regValue{}
		}
		out(regEmptied, h, n, &t, none)
	}
	if c.asked {
		t := *s
		to := &t.nodes[n]
		to.cells[h].asked = false
		switch {
		case !nd.known && p.Defect != RegUnknowingReads:
			if reading {
				to.cells[h].unknowing = true
				out(regRead, h, n, &t, none)
			}
		case nd.promise < ballot || p.Defect == RegNotStrict && nd.promise == ballot:
			if p.Defect != RegNoPromise {
				to.promise = ballot
			}
			if reading {
				to.cells[h].counted = true
				if saw := &t.holders[h].saw; nd.has.isAfter(*saw) || p.Defect == RegLowerRead {
					*saw = nd.has
				}
				out(regRead, h, n, &t, none)
			}
		}
	}
	for step := uint8(1); step <= 2; step++ {
		v := regValue{ballot, step, uint8(h)}
		below := v.ballot < nd.promise || nd.has.isAfter(v)
		switch {
		case p.Defect == RegLowerTaken, p.Defect == RegSecondAnyBallot && step == 2:
			below = false
		case p.Defect == RegFirstAnyStep:
			below = v.ballot < nd.promise || nd.has.ballot > v.ballot
		}
		takes := nd.known && !below || !nd.known && (c.unknowing || p.Defect == RegUnknowingTakes)
		if !c.writes[step] || !takes {
			continue
		}
		t := *s
		to := &t.nodes[n]
		to.known, to.promise, to.cells[h].writes[step] = true, max(ballot, nd.promise), false
		if same := nd.known && nd.has.ballot == v.ballot && nd.has.step == v.step; !same {
			to.has = v
		}
		if step == uint8(ho.phase-regReading) && ho.phase > regReading && ho.left > 0 {
			to.cells[h].counted = true
		}
		out(regTake, h, n, &t, none)
	}
}
