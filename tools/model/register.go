package model

// The model of the register of package internal/register: holders with ballots read it and write it
// twice, at any moment and whoever else does, on nodes that are emptied and restored. Leases are
// left out, so any holder may be stale.
//
// What is in flight to a node is carried out once, at any time, in any order, or never, and its
// answer counts in the round that is under way. That an answer is late adds nothing: of a read it
// is as if that were in flight for ever, which forbids less, and whoever has a quorum of answers to
// a write may fail to see it. A write that is repeated is in flight again, and begins a round. Time
// passes in ticks: a round has a few, and a node that was restarted does not vote for a few. A
// restart loses what the node knows, and what is in flight to it from who had an answer of it: that
// was for the process before. Rule 9, texts of earlier processes, and how long nodes keep a
// register are left out.

// RegisterConfig is a configuration of it.
type RegisterConfig struct {
	Name     string
	Nodes    int
	Holders  int
	Twins    bool // the first two holders have one ballot
	New      bool // no node knows the register yet
	Plain    bool // somebody reads it plainly
	Repeats  bool // a write may be repeated
	Once     bool // holders write once only
	Round    int  // ticks in which a round is over
	Gate     int  // ticks after its restart in which a node does not vote
	Restores int  // at the same time, of keepers
	Restarts int

	Defect RegisterDefect
}

// RegisterDefect is a rule that is broken.
type RegisterDefect uint8

// The defects.
const (
	RegisterSound        RegisterDefect = iota
	RegNoPromise                        // a read promises nothing
	RegFewRead                          // Q - 1 nodes are read
	RegFewWritten                       // Q - 1 nodes take a write
	RegWrittenUnread                    // it is written before it is read
	RegLowerTaken                       // a node takes a write below its promise
	RegLowerRead                        // the value of the last answer is read
	RegNotStrict                        // a ballot is promised twice
	RegUnknowingReads                   // a node that does not know answers a read
	RegUnknowingTakes                   // any write makes a node know
	RegNewAtOnce                        // a new register is written before it is read
	RegFewSources                       // a keeper reads Q - 1 others
	RegUnknowingSources                 // a keeper reads nodes that do not know
	RegOtherProcess                     // a restoration is written to another process
	RegOverKnown                        // a restoration replaces what is known
	RegNoPromiseRestored                // a restoration has no promise
	RegLastSource                       // a keeper takes the value that it read last
	RegNoQuarantine                     // a restarted node votes at once
	RegShortQuarantine                  // a restarted node votes after one R
	RegOldIsKnown                       // a restarted node knows what it has
	RegSecondAnyBallot                  // the second write is taken below the promise
	RegFirstAnyStep                     // the first write is taken after the second
	RegFewPlain                         // Q - 1 nodes are read plainly
	registerDefects
)

var registerDefectNames = [...]string{
	"none", "a read promises nothing", "a read of Q - 1", "a write to Q - 1", "a write before the read",
	"a lower ballot is taken", "a lower ballot's value is read", "a promise is not strict", "a node that does not know is read",
	"any write makes a node know", "a new register is written at once", "a register is restored from Q - 1",
	"it is restored from nodes that do not know", "it is restored to another process", "it is restored over what is known",
	"it is restored without the promise", "it is restored with the value that was read last", "no quarantine", "a quarantine of one R",
	"what a restarted node has is known", "a second write is taken below the promise", "a first write is taken after the second", "a plain read of Q - 1",
}

func (d RegisterDefect) String() string { return registerDefectNames[d] }

func (c *RegisterConfig) quorum() int { return c.Nodes/2 + 1 }

// needs is a quorum, less one for a defect.
func (c *RegisterConfig) needs(d RegisterDefect) int {
	if c.Defect == d {
		return c.quorum() - 1
	}
	return c.quorum()
}

func (c *RegisterConfig) ballot(holder int) uint8 {
	if c.Twins && holder == 1 {
		return 1
	}
	return uint8(holder + 1)
}

// RegisterDesigns are the configurations in which the register has to be right.
func RegisterDesigns() []RegisterConfig {
	base := RegisterConfig{Nodes: 3, Holders: 2, Round: 1, Gate: 1}
	but := func(name string, change func(*RegisterConfig)) RegisterConfig {
		c := base
		c.Name = name
		change(&c)
		return c
	}
	return []RegisterConfig{
		but("register", func(c *RegisterConfig) { c.Restarts, c.Restores = 1, 1 }),
		but("register, three holders", func(c *RegisterConfig) { c.Holders, c.Once = 3, true }),
		but("register, one token twice", func(c *RegisterConfig) { c.Once, c.Twins, c.Restarts, c.Restores = true, true, 1, 1 }),
		but("register, new", func(c *RegisterConfig) { c.New = true }),
		but("register, two restarts", func(c *RegisterConfig) { c.Once, c.Restarts, c.Restores = true, 2, 1 }),
		but("register, writes repeated", func(c *RegisterConfig) { c.Repeats = true }),
		but("register, longer times", func(c *RegisterConfig) { c.Once, c.Round, c.Gate, c.Restarts, c.Restores = true, 2, 3, 1, 1 }),
		but("register, read plainly", func(c *RegisterConfig) { c.Plain, c.Holders, c.Restarts, c.Restores = true, 1, 2, 1 }),
	}
}

// RegisterMistakes are those in which it must be seen to be wrong.
func RegisterMistakes() []RegisterConfig {
	var all []RegisterConfig
	for d := RegNoPromise; d < registerDefects; d++ {
		c := RegisterConfig{Name: d.String(), Nodes: 3, Holders: 2, Round: 1, Gate: 1, Restarts: 1, Restores: 1, Defect: d}
		switch d {
		case RegNotStrict:
			c.Twins = true
		case RegUnknowingTakes:
			c.Repeats = true
		case RegNewAtOnce:
			c.New, c.Restarts = true, 0
		case RegNoQuarantine:
			c.Gate = 0
		case RegShortQuarantine:
			c.Round, c.Gate = 2, 2
		case RegOtherProcess, RegUnknowingSources:
			c.Once, c.Restarts = true, 2
		case RegOverKnown, RegNoPromiseRestored:
			c.Once, c.Repeats = true, true
		case RegFewPlain:
			c.Plain = true
		}
		all = append(all, c)
	}
	return all
}

const (
	regHolders  = 3
	regRestores = 2
)

// regValue is what a write has: its ballot and step, and whose it is.
type regValue struct{ ballot, step, by uint8 }

// isAfter reports whether it was written later.
func (v regValue) isAfter(w regValue) bool {
	return v.ballot > w.ballot || v.ballot == w.ballot && v.step > w.step
}

func (v regValue) code() uint64 { return uint64(v.ballot) | uint64(v.step)<<2 | uint64(v.by)<<4 }

// regState is everything at one moment.
type regState struct {
	nodes    [maxNodes]regNode
	holders  [regHolders]regHolder
	restores [regRestores]regRestore
	plain    regPlain
	restarts uint8
}

type regNode struct {
	known   bool
	age     uint8 // ticks since the restart, up to the gate
	promise uint8
	has     regValue
	cells   [regHolders]regCell
	target  [regRestores]bool // of a restoration
	read    [regRestores]bool // by it
	heard   bool              // by the plain read
}

// regCell is what is between a holder and a node.
type regCell struct {
	asked     bool    // a read is in flight
	empties   bool    // a restoration as empty is, and a read behind it
	writes    [3]bool // the writes of steps 1 and 2 are
	unknowing bool    // it answered the read that it does not know, and is still that process
	counted   bool    // its answer counts in the round under way
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
	regSecond // and so the step that it writes is one less
)

type regRestore struct {
	active, bound bool
	promise       uint8
	has           regValue
}

// regPlain is a plain read, which has to find what stood when it began.
type regPlain struct {
	active, done bool
	stood, saw   regValue
}

type registers struct{ RegisterConfig }

var _ system[regState] = registers{}

func (p registers) initial() []regState {
	var s regState
	for n := range p.Nodes {
		s.nodes[n] = regNode{known: !p.New, age: uint8(p.Gate)}
	}
	return []regState{s}
}

func (p registers) votes(n *regNode) bool { return int(n.age) >= p.Gate }

// The kinds of steps.
const (
	regTick eventKind = iota
	regBegin
	regRead
	regDecide
	regEmpty
	regEmptied
	regTake
	regStand
	regAgain
	regGiveUp
	regRestart
	regRestore1
	regSource
	regRestored
	regAsk
	regHear
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
	for r := range p.Restores {
		p.restoreSteps(s, r, out)
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

// giveUp ends a round without a quorum. What is in flight stays so.
func (p registers) giveUp(t *regState, h int) {
	p.round(t, h)
	t.holders[h].left = 0
	if t.holders[h].over = t.holders[h].phase == regReading; t.holders[h].over {
		for n := range p.Nodes {
			t.nodes[n].cells[h].unknowing = false
		}
	}
}

// send has a holder write, in a new round.
func (p registers) send(t *regState, h int) {
	p.round(t, h)
	for n := range p.Nodes {
		t.nodes[n].cells[h].writes[t.holders[h].phase-regReading] = true
	}
}

func (p registers) holderSteps(s *regState, h int, out regYield) {
	ho := &s.holders[h]
	counted, unknowing := 0, 0
	for n := range p.Nodes {
		if s.nodes[n].cells[h].counted {
			counted++
		}
		if s.nodes[n].cells[h].unknowing {
			unknowing++
		}
	}
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
	case ho.left == 0 && p.Repeats: // its round is over
		p.send(&t, h)
		out(regAgain, h, 0, &t, none)
	case ho.phase == regReading && counted >= p.needs(RegFewRead):
		begin(p.readBy(s, h))
	case ho.phase == regReading && p.New && counted == 0 && unknowing >= p.quorum() && p.Defect == RegNewAtOnce:
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

// readBy reports whether a holder that has read may go on: it has found all that stood under lower
// ballots.
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

// stands reports whether a write may stand: all who have read under higher ballots have found it,
// and no other one has the same ballot and stands.
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

// nodeSteps have a node carry out what is in flight from a holder: its answer counts, or is late.
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

// restart crashes a node, which comes back empty.
func (p registers) restart(t *regState, n int) {
	nd := &t.nodes[n]
	nd.age, nd.known = 0, nd.known && p.Defect == RegOldIsKnown
	nd.promise, nd.has = 0, regValue{}
	for h := range nd.cells {
		c := &nd.cells[h]
		*c = regCell{counted: c.counted}
	}
	for r := range t.restores {
		if nd.target[r] {
			t.restores[r].bound = false
		}
	}
}

func (p registers) restoreSteps(s *regState, r int, out regYield) {
	re := &s.restores[r]
	sources := 0
	for n := range p.Nodes {
		nd := &s.nodes[n]
		t := *s
		switch {
		case !re.active && p.votes(nd) && !nd.known:
			t.restores[r] = regRestore{active: true, bound: true}
			t.nodes[n].target[r] = true
			out(regRestore1, r, n, &t, none)
		case !re.active || nd.target[r]:
		case nd.read[r]:
			sources++
		case p.votes(nd) && (nd.known || p.Defect == RegUnknowingSources):
			to := &t.restores[r]
			t.nodes[n].read[r] = true
			if nd.has.isAfter(re.has) || p.Defect == RegLastSource {
				to.has = nd.has
			}
			if p.Defect != RegNoPromiseRestored {
				to.promise = max(re.promise, nd.promise)
			}
			out(regSource, r, n, &t, none)
		}
	}
	for n := range p.Nodes {
		nd := &s.nodes[n]
		if !re.active || !nd.target[r] {
			continue
		}
		t := *s
		to := &t.nodes[n]
		t.restores[r] = regRestore{}
		for m := range t.nodes {
			t.nodes[m].target[r], t.nodes[m].read[r] = false, false
		}
		if sources >= p.needs(RegFewSources) && (re.bound || p.Defect == RegOtherProcess) && (!nd.known || p.Defect == RegOverKnown) && p.votes(nd) {
			done := t
			d := &done.nodes[n]
			d.known, d.promise, d.has = true, re.promise, re.has
			out(regRestored, r, n, &done, none)
		}
		if !re.bound || to.known { // it is of no use any more
			out(regGiveUp, r, n, &t, none)
		}
	}
}

func (p registers) plainSteps(s *regState, out regYield) {
	if !s.plain.active {
		t := *s
		t.plain.active = true
		for h := range p.Holders {
			if v := (regValue{p.ballot(h), s.holders[h].stood, uint8(h)}); v.step > 0 && v.isAfter(t.plain.stood) {
				t.plain.stood = v
			}
		}
		out(regAsk, 0, 0, &t, none)
		return
	}
	heard := 1
	for n := range p.Nodes {
		if s.nodes[n].heard {
			heard++
		}
	}
	for n := range p.Nodes {
		nd := &s.nodes[n]
		if nd.heard || !nd.known || !p.votes(nd) {
			continue
		}
		t := *s
		t.nodes[n].heard = true
		if nd.has.isAfter(t.plain.saw) {
			t.plain.saw = nd.has
		}
		broken := none
		if heard >= p.needs(RegFewPlain) {
			if t.plain.stood.isAfter(t.plain.saw) {
				broken = WhatStandsIsRead
			}
			t.plain = regPlain{done: true}
			for m := range t.nodes {
				t.nodes[m].heard = false
			}
		}
		out(regHear, 0, n, &t, broken)
	}
}
