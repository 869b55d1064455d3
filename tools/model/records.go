package model

import (
	"cmp"
	"fmt"
	"math/bits"
	"runtime"
	"slices"
	"strings"
)

// RecordConfig is a configuration of the model of records: attempts to be granted one number, at
// most once, on nodes that forget what they have recorded, and restore it from each other.
//
// The leases themselves are left out, which only makes it easier to be granted a number twice. A
// node has recorded the number or it has not: greater ones are recorded like it. Time passes in
// ticks; an attempt has a few of them to find its quorum, and a node that was restarted does not
// vote for a few. Everything else is as in the model of leases, see doc.go.
type RecordConfig struct {
	Name     string
	Nodes    int
	Round    int // ticks in which an attempt must have its quorum
	Gate     int // ticks after its restart in which a node does not vote
	Restores int // at the same time
	Restarts int // in all; -1 for no limit

	Defect RecordDefect
}

// RecordDefect is a deliberate mistake in how records are kept and restored.
type RecordDefect uint8

// The defects.
const (
	RecordSound         RecordDefect = iota
	UnknowingVotes                   // a node that does not know grants numbers
	OldDataIsKnown                   // what a node comes back with counts as known, whatever process it is of
	ReadFirst                        // others are read before the process that is to know is
	WrittenToAnother                 // what was read for one process is written to the next
	WrittenOverKnown                 // a write replaces what the node has, also if it knows meanwhile
	UnknowingSources                 // nodes that do not know count among those that are read
	FewerSources                     // one node less than a quorum is read
	RoundWithoutEnd                  // a round may take longer than the gate keeps a restarted node out
	RestoredWithoutGate              // a restarted node is restored, and votes, at once
	RestoredTakenBack                // an attempt that fails takes its number back also where a restore has copied it to
)

var recordDefectNames = [...]string{
	RecordSound:         "none",
	UnknowingVotes:      "a node that does not know votes",
	OldDataIsKnown:      "old data counts as known",
	ReadFirst:           "others are read before the run_id is known",
	WrittenToAnother:    "a restore is written to another process",
	WrittenOverKnown:    "a restore replaces what is known",
	UnknowingSources:    "sources that do not know",
	FewerSources:        "one source less than a quorum",
	RoundWithoutEnd:     "a round that straddles a restart and a restore",
	RestoredWithoutGate: "no gate before a restore",
	RestoredTakenBack:   "what was restored is taken back",
}

func (d RecordDefect) String() string { return recordDefectNames[d] }

func (c *RecordConfig) quorum() int { return c.Nodes/2 + 1 }

// sources is how many others are read.
func (c *RecordConfig) sources() int {
	n := min(c.quorum(), c.Nodes-1)
	if c.Defect == FewerSources {
		n--
	}
	return n
}

func (c *RecordConfig) gate() int {
	if c.Defect == RestoredWithoutGate {
		return 0
	}
	return c.Gate
}

var recordDesign = RecordConfig{Nodes: 3, Round: 1, Gate: 1, Restores: 1, Restarts: -1}

func (c RecordConfig) but(name string, change func(*RecordConfig)) RecordConfig {
	c.Name = name
	change(&c)
	return c
}

// RecordDesigns are the configurations in which no number may be granted twice.
func RecordDesigns() []RecordConfig {
	return []RecordConfig{
		recordDesign.but("records", func(*RecordConfig) {}),
		recordDesign.but("records, two restores at a time", func(c *RecordConfig) { c.Restores, c.Restarts = 2, 2 }),
		recordDesign.but("records, longer times", func(c *RecordConfig) { c.Round, c.Gate, c.Restarts = 2, 2, 2 }),
		recordDesign.but("records, four nodes", func(c *RecordConfig) { c.Nodes, c.Restarts = 4, 1 }),
		recordDesign.but("records, five nodes", func(c *RecordConfig) { c.Nodes, c.Restarts = 5, 1 }),
	}
}

// RecordMistakes are the configurations in which a number must be seen to be granted twice.
func RecordMistakes() []RecordConfig {
	var all []RecordConfig
	for d := UnknowingVotes; d <= RestoredTakenBack; d++ {
		all = append(all, recordDesign.but(d.String(), func(c *RecordConfig) {
			c.Defect = d
			if d == WrittenOverKnown || d == WrittenToAnother {
				c.Restores, c.Restarts = 2, 2
			}
		}))
	}
	return all
}

const (
	recordAttempts = 2
	recordRestores = 2
	foreign        = recordAttempts + 1 // in place of an attempt's number: one that is not there any more
)

// recordState is everything at one moment.
type recordState struct {
	nodes    [maxNodes]recordNode
	attempts [recordAttempts]recordAttempt
	restores [recordRestores]restoring
	granted  bool  // the number has been granted
	restarts uint8 // where they are limited
}

// recordNode is one server, what lies between it and each attempt, and what each restore has of it.
type recordNode struct {
	has   uint8 // whose grant of the number it has recorded: an attempt's, from 1 on, or foreign, or 0 for none
	known bool
	age   uint8 // ticks since the restart, up to the gate
	cells [recordAttempts]recordCell

	target, read [recordRestores]bool
}

// recordCell is what is under way between an attempt and a node.
type recordCell struct {
	asked   bool // the question is in flight
	granted bool // the answer counts for the attempt
	undo    bool // what takes the grant back is in flight, behind the question
}

type recordAttempt struct {
	phase phase // idle, acquiring, or ended: it takes back what it was granted
	left  uint8
}

// restoring is a restore under way.
type restoring struct {
	active bool
	bound  bool  // the process that is to know is still the one that answered
	value  uint8 // as recordNode.has; only foreign, but for the defect
}

// records is the system of a configuration.
type records struct{ RecordConfig }

var _ system[recordState] = records{}

func (p records) initial() []recordState {
	var s recordState
	for n := range p.Nodes {
		s.nodes[n] = recordNode{known: true, age: uint8(p.gate())}
	}
	return []recordState{s}
}

// The kinds of steps.
const (
	recTick eventKind = iota
	recBegin
	recGrant
	recDecide
	recFail
	recUndo
	recForget
	recRestart
	recRestartOld
	recRestore
	recRead
	recWrite
	recDrop
)

func (p records) votes(n *recordNode) bool { return int(n.age) >= p.gate() }

func (p records) steps(s *recordState, yield func(e event, next *recordState, broken Property)) {
	for i := range recordAttempts {
		p.attemptSteps(s, i, yield)
	}
	for r := range p.Restores {
		p.restoreSteps(s, r, yield)
	}
	for n := range p.Nodes {
		p.restartSteps(s, n, yield)
	}
	t := *s
	for n := range p.Nodes {
		if nd := &t.nodes[n]; !p.votes(nd) {
			nd.age++
		}
	}
	for i := range recordAttempts {
		if at := &t.attempts[i]; at.phase == acquiring && p.Defect != RoundWithoutEnd {
			if at.left--; at.left == 0 {
				p.fail(&t, i)
			}
		}
	}
	yield(event{kind: recTick}, &t, none)
}

func (p records) attemptSteps(s *recordState, i int, yield func(event, *recordState, Property)) {
	e := func(k eventKind, n int) event { return event{kind: k, attempt: int8(i), node: int8(n)} }
	switch s.attempts[i].phase {
	case idle:
		t := *s
		t.attempts[i] = recordAttempt{acquiring, uint8(p.Round)}
		for n := range p.Nodes {
			t.nodes[n].cells[i].asked = true
		}
		yield(e(recBegin, 0), &t, none)
		return
	case acquiring:
		set := 0
		for n := range p.Nodes {
			if s.nodes[n].cells[i].granted {
				set |= 1 << n
			}
		}
		if bits.OnesCount(uint(set)) >= p.quorum() {
			t := *s
			broken := none
			if t.granted {
				broken = GrantedOnce
			}
			t.granted = true
			p.forget(&t, i)
			decided := e(recDecide, 0)
			decided.arg = int8(set)
			yield(decided, &t, broken)
		}
		t := *s
		p.fail(&t, i)
		yield(e(recFail, 0), &t, none)
	case ended:
		t := *s
		p.forget(&t, i)
		yield(e(recForget, 0), &t, none)
	}
	for n := range p.Nodes {
		nd := &s.nodes[n]
		if nd.cells[i].asked && p.votes(nd) && nd.has == 0 && (nd.known || p.Defect == UnknowingVotes) {
			t := *s
			t.nodes[n].has = uint8(i + 1)
			t.nodes[n].cells[i].asked = false
			t.nodes[n].cells[i].granted = s.attempts[i].phase == acquiring
			yield(e(recGrant, n), &t, none)
		}
		if nd.cells[i].undo {
			t := *s
			t.nodes[n].cells[i] = recordCell{}
			if nd.has == uint8(i+1) {
				t.nodes[n].has = 0
			}
			yield(e(recUndo, n), &t, none)
		}
	}
}

// fail ends an attempt, which takes its number back everywhere.
func (p records) fail(t *recordState, i int) {
	t.attempts[i] = recordAttempt{phase: ended}
	for n := range p.Nodes {
		t.nodes[n].cells[i].granted = false
		t.nodes[n].cells[i].undo = true
	}
}

// forget ends what is left of an attempt: what is in flight is lost, and what it has recorded is
// nobody's.
func (p records) forget(t *recordState, i int) {
	t.attempts[i] = recordAttempt{}
	for n := range p.Nodes {
		t.nodes[n].cells[i] = recordCell{}
		if t.nodes[n].has == uint8(i+1) {
			t.nodes[n].has = foreign
		}
	}
	for r := range t.restores {
		if t.restores[r].value == uint8(i+1) {
			t.restores[r].value = foreign
		}
	}
}

func (p records) restoreSteps(s *recordState, r int, yield func(event, *recordState, Property)) {
	e := func(k eventKind, n int) event { return event{kind: k, attempt: int8(r), node: int8(n)} }
	if !s.restores[r].active {
		for n := range p.Nodes {
			if nd := &s.nodes[n]; p.Defect == ReadFirst || p.votes(nd) && !nd.known {
				t := *s
				t.restores[r] = restoring{active: true, bound: true}
				t.nodes[n].target[r] = true
				yield(e(recRestore, n), &t, none)
			}
		}
		return
	}
	read := 0
	for n := range p.Nodes {
		nd := &s.nodes[n]
		if nd.read[r] {
			read++
		} else if !nd.target[r] && p.votes(nd) && (nd.known || p.Defect == UnknowingSources) {
			t := *s
			t.nodes[n].read[r] = true
			if t.restores[r].value == 0 {
				t.restores[r].value = p.copied(nd.has)
			}
			yield(e(recRead, n), &t, none)
		}
	}
	drop := func(t *recordState) {
		t.restores[r] = restoring{}
		for n := range p.Nodes {
			t.nodes[n].target[r], t.nodes[n].read[r] = false, false
		}
	}
	for n := range p.Nodes {
		nd := &s.nodes[n]
		if !nd.target[r] || read < p.sources() {
			continue
		}
		right := s.restores[r].bound || p.Defect == ReadFirst && p.votes(nd) || p.Defect == WrittenToAnother
		if !right || nd.known && p.Defect != WrittenOverKnown {
			continue
		}
		t := *s
		if t.nodes[n].has = p.copied(nd.has); nd.has == 0 || p.Defect == WrittenOverKnown {
			t.nodes[n].has = s.restores[r].value
		}
		t.nodes[n].known = true
		drop(&t)
		yield(e(recWrite, n), &t, none)
	}
	t := *s
	drop(&t)
	yield(e(recDrop, 0), &t, none)
}

// copied is what a restore makes of a grant: one that nobody takes back.
func (p records) copied(has uint8) uint8 {
	if has == 0 || p.Defect == RestoredTakenBack {
		return has
	}
	return foreign
}

// restartSteps crash a node, which comes back empty, or with what it had.
func (p records) restartSteps(s *recordState, n int, yield func(event, *recordState, Property)) {
	if p.Restarts >= 0 && int(s.restarts) >= p.Restarts {
		return
	}
	t := *s
	if p.Restarts >= 0 {
		t.restarts++
	}
	nd := &t.nodes[n]
	nd.known, nd.age = p.Defect == OldDataIsKnown, 0
	for i := range nd.cells {
		nd.cells[i].asked = false
	}
	for r := range t.restores {
		if nd.target[r] {
			t.restores[r].bound = false
		}
	}
	if nd.has != 0 {
		old := t
		yield(event{kind: recRestartOld, node: int8(n)}, &old, none)
	}
	nd.has = 0
	yield(event{kind: recRestart, node: int8(n)}, &t, none)
}

func (n *recordNode) word() uint64 {
	w := uint64(n.has) | uint64(n.age)<<4
	flag := func(at int, set bool) {
		if set {
			w |= 1 << at
		}
	}
	flag(3, n.known)
	for i, c := range n.cells {
		flag(8+4*i, c.asked)
		flag(9+4*i, c.granted)
		flag(10+4*i, c.undo)
	}
	for r := range recordRestores {
		flag(24+2*r, n.target[r])
		flag(25+2*r, n.read[r])
	}
	return w
}

// words packs a state into numbers.
func (s *recordState) words(w *[maxNodes + 1]uint64) []uint64 {
	rest := uint64(s.restarts)
	if s.granted {
		rest |= 1 << 8
	}
	for i, at := range s.attempts {
		rest |= (uint64(at.phase) | uint64(at.left)<<4) << (12 + 8*i)
	}
	for r, x := range s.restores {
		code := uint64(x.value) << 2
		if x.active {
			code |= 1
		}
		if x.bound {
			code |= 2
		}
		rest |= code << (32 + 8*r)
	}
	w[0] = rest
	for n := range s.nodes {
		w[n+1] = s.nodes[n].word()
	}
	return w[:]
}

// canonical picks one of the states that differ in names only: nodes in order, under the names of
// attempts and restores that give the least.
func (p records) canonical(s *recordState) {
	var best, w [maxNodes + 1]uint64
	attempts, restores := false, false
	for variant := range 4 {
		if variant > 1 && p.Restores == 1 {
			break
		}
		v := s.renamed(variant&1 != 0, variant&2 != 0)
		v.words(&w)
		slices.Sort(w[1 : p.Nodes+1])
		if variant == 0 || slices.Compare(w[:], best[:]) < 0 {
			best, attempts, restores = w, variant&1 != 0, variant&2 != 0
		}
	}
	*s = s.renamed(attempts, restores)
	slices.SortFunc(s.nodes[:p.Nodes], func(a, b recordNode) int { return cmp.Compare(a.word(), b.word()) })
}

// renamed swaps the two attempts, and the two restores.
func (s *recordState) renamed(attempts, restores bool) recordState {
	t := *s
	if attempts {
		t.attempts[0], t.attempts[1] = t.attempts[1], t.attempts[0]
		for n := range t.nodes {
			nd := &t.nodes[n]
			nd.cells[0], nd.cells[1] = nd.cells[1], nd.cells[0]
			if nd.has == 1 || nd.has == 2 {
				nd.has = 3 - nd.has
			}
		}
		for r := range t.restores {
			if v := &t.restores[r].value; *v == 1 || *v == 2 {
				*v = 3 - *v
			}
		}
	}
	if restores {
		t.restores[0], t.restores[1] = t.restores[1], t.restores[0]
		for n := range t.nodes {
			nd := &t.nodes[n]
			nd.target[0], nd.target[1] = nd.target[1], nd.target[0]
			nd.read[0], nd.read[1] = nd.read[1], nd.read[0]
		}
	}
	return t
}

func (p records) identity(s *recordState) fingerprint {
	var w [maxNodes + 1]uint64
	return hash(s.words(&w))
}

// RecordOutcome is what checking a configuration of the model of records gave.
type RecordOutcome struct {
	Config RecordConfig
	result[recordState]
	Trace string // the counterexample, a line a step
}

// CheckRecords visits all states of a configuration until a number is granted twice. It uses all
// processors.
func CheckRecords(c RecordConfig) RecordOutcome {
	r := search[recordState](records{c}, runtime.GOMAXPROCS(0), stateLimit)
	return RecordOutcome{c, r, records{c}.report(r.trace)}
}

// report writes a counterexample, a line a step: what happened, and then what each node has
// recorded, in brackets where it does not know it, and for how long it has been up while it does
// not vote.
func (p records) report(trace []move[recordState]) string {
	var b strings.Builder
	var names [recordAttempts]string
	begun := 0
	for k, m := range trace {
		if k == 0 {
			continue
		}
		if m.event.kind == recBegin {
			names[m.event.attempt] = string(rune('A' + begun%26))
			begun++
		}
		line := fmt.Sprintf("%2d  %-46s", k, m.event.recordText(names))
		for n := range p.Nodes {
			nd := &m.state.nodes[n]
			has := "-"
			if nd.has != 0 {
				has = "n"
			}
			if !nd.known {
				has = "(" + has + ")"
			}
			if !p.votes(nd) {
				has += fmt.Sprintf(" up %d", nd.age)
			}
			line += fmt.Sprintf(" %-8s", has)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func (e event) recordText(names [recordAttempts]string) string {
	a, n := "", nodeName(int(e.node))
	if int(e.attempt) < len(names) {
		a = names[e.attempt]
	}
	restore := fmt.Sprintf("restore %d", e.attempt+1)
	switch e.kind {
	case recTick:
		return "a tick passes"
	case recBegin:
		return a + " asks all nodes for the number"
	case recGrant:
		return n + " grants it to " + a
	case recDecide:
		return a + " has the number, granted by " + nodeNames(e.arg)
	case recFail:
		return a + " gives up, and takes back what it has"
	case recUndo:
		return n + " takes back what it granted " + a
	case recForget:
		return "what is in flight for " + a + " is lost"
	case recRestart:
		return n + " crashes and comes back empty"
	case recRestartOld:
		return n + " crashes and comes back with its data"
	case recRestore:
		return fmt.Sprintf("%s is begun for %s", restore, n)
	case recRead:
		return fmt.Sprintf("%s reads %s", restore, n)
	case recWrite:
		return fmt.Sprintf("%s is written to %s", restore, n)
	default:
		return restore + " is given up"
	}
}
