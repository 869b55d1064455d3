package model

import (
	"cmp"
	"runtime"
	"slices"
)

const (
	markOps      = 3
	markRestores = 2
)

// The contents of marks: floors. A number is due at one of the first two.
const (
	dueOld  uint8 = iota // or no floor at all
	dueNew               // or the floor that a resume sets, which is later than what was due old
	forEver              // the floor that a pause sets
)

// markState is everything at one moment.
type markState struct {
	nodes    [maxNodes]markNode
	ops      [markOps]markOp
	attempt  markAttempt
	restores [markRestores]markRestore
	restarts uint8 // where they are limited
	emptied  uint8 // likewise
	flushes  uint8 // likewise
}

// mark is the content of marks and its version, 0 for none.
type mark struct{ version, floor uint8 }

// markNode is one server, and what operations, restores and the attempt have of it.
type markNode struct {
	mark
	known  bool
	age    uint8         // ticks since the restart, up to the gate
	counts bool          // its answer to the attempt does: a grant, or a refusal where that is asked
	seen   [markOps]bool // by an operation that reads it, or that has its acknowledgement

	target [markRestores]bool
	read   [markRestores]answered
}

// answered is whether a restore has an answer of a node, and which.
type answered uint8

const (
	unread answered = iota
	unknowing
	knowing
)

// markOp is an operation: a pause, a resume, or a change of the marks of other jobs, which writes
// this one's as it has read it.
type markOp struct {
	kind   markKind
	phase  markPhase
	left   uint8 // ticks until the round ends, or until the operation returns
	lapsed bool  // its lease is over
	mark         // what it writes; the floor and the version that it has read, while it reads
}

type markKind uint8

const (
	pausing markKind = iota
	resuming
	changing
)

type markPhase uint8

const (
	opIdle markPhase = iota
	opReading
	opWriting
	opWaiting
	opReturned
	opFailed // what it has sent may still arrive
)

// markAttempt is that of one process to be granted a number.
type markAttempt struct {
	asking bool
	due    uint8
	left   uint8
	since  uint8 // a set: the operations that had returned when it began, where that is asked
}

// markRestore is a restore under way.
type markRestore struct {
	active bool
	bound  bool // the process that is to know is still the one that answered
	mark
}

// marks is the system of a configuration.
type marks struct{ MarkConfig }

var _ system[markState] = marks{}

func (p marks) initial() []markState {
	var s markState
	for n := range p.Nodes {
		s.nodes[n] = markNode{known: !p.New, age: uint8(p.gate())}
	}
	return []markState{s}
}

// The kinds of steps.
const (
	mkTick eventKind = iota
	mkAsk
	mkAnswer
	mkDecide
	mkBegin
	mkLook
	mkWrite
	mkTaken
	mkStray
	mkLapse
	mkRestart
	mkRestartOld
	mkFlush
	mkRestore
	mkRead
	mkRestored
	mkDrop
)

func (p marks) votes(n *markNode) bool { return int(n.age) >= p.gate() }

func (p marks) steps(s *markState, yield func(e event, next *markState, broken Property)) {
	out := func(kind eventKind, i, n int, t *markState) {
		yield(event{kind: kind, attempt: int8(i), node: int8(n)}, t, none)
	}
	p.attemptSteps(s, yield)
	for i := range p.Operations {
		p.opSteps(s, i, out)
	}
	for r := range p.Restores {
		p.restoreSteps(s, r, out)
	}
	for n := range p.Nodes {
		p.restartSteps(s, n, out)
	}
	t := *s
	p.tick(&t)
	out(mkTick, 0, 0, &t)
}

func (p marks) tick(t *markState) {
	for n := range p.Nodes {
		if nd := &t.nodes[n]; !p.votes(nd) {
			nd.age++
		}
	}
	if t.attempt.asking {
		if t.attempt.left--; t.attempt.left == 0 {
			t.attempt = markAttempt{}
			for n := range p.Nodes {
				t.nodes[n].counts = false
			}
		}
	}
	for i := range p.Operations {
		op := &t.ops[i]
		if op.phase == opWriting && p.Defect != MarkRoundWithoutEnd || op.phase == opWaiting {
			if op.left--; op.left > 0 {
				continue
			}
			if op.phase == opWriting {
				p.leave(t, i, opFailed)
			} else {
				op.phase = opReturned
			}
		}
	}
}

// attemptSteps ask for a number, and count grants, or refusals. An attempt does nothing to others,
// so there is one at a time, and no step for one that gives up or keeps its promises.
func (p marks) attemptSteps(s *markState, yield func(event, *markState, Property)) {
	at := &s.attempt
	e := func(k eventKind, n int) event { return event{kind: k, attempt: int8(at.due), node: int8(n)} }
	if !at.asking {
		for due := dueOld; due <= dueNew; due++ {
			t := *s
			t.attempt = markAttempt{asking: true, due: due, left: uint8(p.Acquire)}
			for i, op := range s.ops {
				if p.Later && op.phase == opReturned {
					t.attempt.since |= 1 << i
				}
			}
			yield(event{kind: mkAsk, attempt: int8(due)}, &t, none)
		}
		return
	}
	counted := int8(0)
	for n := range p.Nodes {
		nd := &s.nodes[n]
		if nd.counts {
			counted |= 1 << n
		} else if p.votes(nd) && (nd.known || p.Defect == UnknowingGrants) && (p.compared(at.due) < nd.floor) == p.Skips {
			t := *s
			t.nodes[n].counts = true
			yield(e(mkAnswer, n), &t, none)
		}
	}
	need, broken := p.quorum(), PausedIsNotGranted
	if p.Skips {
		broken = ResumedIsNotSkipped
	}
	if p.Defect == SkippedByOne {
		need = 1
	}
	if memberSet(counted).size() >= need && p.promised(s) {
		t := *s
		decided := e(mkDecide, 0)
		decided.arg = counted
		yield(decided, &t, broken)
	}
}

// compared is what a node compares with the floor.
func (p marks) compared(due uint8) uint8 {
	switch p.Defect {
	case NumberComparedAbove:
		return dueNew
	case NumberComparedBelow:
		return dueOld
	}
	return due
}

// promised reports whether what the attempt counts may not be: an operation returned that has set a
// floor above what is due (or not above it, if refusals are counted), and no later one began to
// write the opposite. Without a lease none is the later one: there the opposite is not written at
// all.
func (p marks) promised(s *markState) bool {
	at := &s.attempt
	returned := false
	for i := p.Operations - 1; i >= 0; i-- {
		op := &s.ops[i]
		switch {
		case op.kind == changing || op.phase <= opReading:
		case (op.floor > at.due) == p.Skips:
			return returned && p.Defect != NoOperatorLease
		case op.phase == opReturned && (!p.Later || at.since>>i&1 == 1):
			returned = true
		}
	}
	return returned
}

func (p marks) opSteps(s *markState, i int, out func(eventKind, int, int, *markState)) {
	op := &s.ops[i]
	switch op.phase {
	case opIdle:
		if !p.leased(s, i) {
			return
		}
		for kind := pausing; kind <= changing; kind++ {
			t := *s
			to := &t.ops[i]
			*to = markOp{kind: kind, phase: opReading}
			if kind != changing && p.Defect != NoOperatorLease {
				p.write(&t, i) // what it reads is of other jobs
			}
			out(mkBegin, i, 0, &t)
		}
	case opReading:
		p.lookSteps(s, i, out)
	default:
		p.writeSteps(s, i, out)
	}
	if (op.phase == opReading || op.phase == opWriting) && !op.lapsed {
		t := *s
		t.ops[i].lapsed = true
		if op.phase == opWriting && p.Defect != LeaseNotChecked {
			p.leave(&t, i, opFailed)
		}
		out(mkLapse, i, 0, &t)
	}
}

// leased reports whether an operation may be the next to have the lease. They begin in the order of
// their numbers, which are their versions.
func (p marks) leased(s *markState, i int) bool {
	for j := range i {
		op := &s.ops[j]
		has := (op.phase == opReading || op.phase == opWriting) && !op.lapsed
		if op.phase == opIdle || has && p.Defect != NoOperatorLease {
			return false
		}
	}
	return true
}

// lookSteps read a node.
func (p marks) lookSteps(s *markState, i int, out func(eventKind, int, int, *markState)) {
	seen := 1
	for n := range p.Nodes {
		if s.nodes[n].seen[i] {
			seen++
		}
	}
	for n := range p.Nodes {
		nd := &s.nodes[n]
		if nd.seen[i] || !p.votes(nd) || !nd.known && p.Defect != UnknowingLooked {
			continue
		}
		t := *s
		to := &t.ops[i]
		if nd.version > to.version {
			to.mark = nd.mark
		}
		t.nodes[n].seen[i] = true
		if need := p.quorum(); seen >= need || p.Defect == FewerLooked && seen >= need-1 {
			p.write(&t, i)
		}
		out(mkLook, i, n, &t)
	}
}

// write begins to write.
func (p marks) write(t *markState, i int) {
	op := &t.ops[i]
	if op.version++; p.Defect != NoOperatorLease {
		op.version = uint8(i + 1)
	}
	switch op.kind {
	case pausing:
		op.floor = forEver
	case resuming:
		op.floor = dueNew
	}
	if op.lapsed && p.Defect != LeaseNotChecked {
		p.leave(t, i, opFailed)
	} else {
		p.leave(t, i, opWriting)
		op.left = uint8(p.Round)
	}
}

// leave ends a phase, and what was counted in it.
func (p marks) leave(t *markState, i int, next markPhase) {
	op := &t.ops[i]
	op.phase, op.left = next, 0
	if next != opWriting {
		op.lapsed = false
	}
	for n := range t.nodes {
		t.nodes[n].seen[i] = false
	}
}

// writeSteps have a node take what is written, now or late.
func (p marks) writeSteps(s *markState, i int, out func(eventKind, int, int, *markState)) {
	op := &s.ops[i]
	taken := 0
	for n := range p.Nodes {
		nd := &s.nodes[n]
		if nd.seen[i] {
			taken++
			continue
		}
		// An answer that is lost is one that the operation does not wait for. A node that has been
		// told by others says yes.
		rises := op.version > nd.version || p.Defect == LowerReplaces && op.mark != nd.mark
		has := op.mark == nd.mark && op.phase == opWriting && p.Defect != NoOperatorLease
		takes := p.votes(nd) && (nd.known || p.Defect == UnknowingTakes)
		if !takes || !rises && !has {
			continue
		}
		t := *s
		t.nodes[n].mark = op.mark
		kind := mkStray
		if op.phase == opWriting {
			t.nodes[n].seen[i] = true
			kind = mkWrite
		}
		out(kind, i, n, &t)
	}
	if op.phase == opWriting && taken >= p.writes() {
		t := *s
		p.leave(&t, i, opWaiting)
		to := &t.ops[i]
		wait := p.Wait
		if p.Defect == WaitsFromTheStart {
			wait -= p.Round - int(op.left)
		}
		if to.left = uint8(max(wait, 0)); to.left == 0 {
			to.phase = opReturned
		}
		out(mkTaken, i, 0, &t)
	}
}

func (p marks) restoreSteps(s *markState, r int, out func(eventKind, int, int, *markState)) {
	re := &s.restores[r]
	if !re.active {
		for n := range p.Nodes {
			if nd := &s.nodes[n]; p.restorable(nd) {
				t := *s
				t.restores[r] = markRestore{active: true, bound: true}
				t.nodes[n].target[r] = true
				out(mkRestore, r, n, &t)
			}
		}
		return
	}
	known, all := 0, 0
	for n := range p.Nodes {
		nd := &s.nodes[n]
		switch {
		case nd.read[r] == knowing:
			known++
			all++
		case nd.read[r] == unknowing:
			all++
		case nd.target[r] || !p.votes(nd) || !nd.known && !p.Desperate && p.Defect != UnknowingMarkSources:
		default:
			t := *s
			to := &t.restores[r]
			if nd.version > to.version || p.Defect == LastReadWins {
				to.mark = nd.mark
			}
			if t.nodes[n].read[r] = unknowing; nd.known || p.Defect == UnknowingMarkSources {
				t.nodes[n].read[r] = knowing
			}
			out(mkRead, r, n, &t)
		}
	}
	drop := func(t *markState) {
		t.restores[r] = markRestore{}
		for n := range p.Nodes {
			t.nodes[n].target[r], t.nodes[n].read[r] = false, unread
		}
	}
	desperate := p.Desperate && known < p.quorum()-1 && all+1 >= p.quorum()
	for n := range p.Nodes {
		nd := &s.nodes[n]
		if !nd.target[r] || known < p.sources() && !desperate {
			continue
		}
		right := re.bound || p.Defect == ReadBeforeProcess && p.votes(nd) || p.Defect == RestoredToAnother
		if !right || nd.known && p.Defect != RestoredOverKnown {
			continue
		}
		t := *s
		to := &t.nodes[n]
		if to.known = true; re.version > nd.version || p.Defect == RestoredOverKnown || p.Defect == OwnForgotten {
			to.mark = re.mark
		}
		drop(&t)
		out(mkRestored, r, n, &t)
	}
	t := *s
	drop(&t)
	out(mkDrop, r, 0, &t)
}

// restorable reports whether a restore may begin.
func (p marks) restorable(n *markNode) bool {
	return (p.votes(n) || p.Defect == ReadInQuarantine) && (!n.known || p.Defect == ReadBeforeProcess)
}

// restartSteps crash a node, which comes back empty, or with what it had; or empty it while it
// runs.
func (p marks) restartSteps(s *markState, n int, out func(eventKind, int, int, *markState)) {
	nd := &s.nodes[n]
	if int(s.flushes) < p.Flushes && !(p.Calm && p.busy(s)) {
		t := *s
		t.flushes++
		to := &t.nodes[n]
		to.mark, to.known = mark{}, false
		out(mkFlush, 0, n, &t)
	}
	if p.Restarts >= 0 && int(s.restarts) >= p.Restarts || p.OneByOne && !p.othersKnow(s, n) {
		return
	}
	t := *s
	if p.Restarts >= 0 {
		t.restarts++
	}
	to := &t.nodes[n]
	to.known, to.age = p.Defect == OldMarksAreKnown, 0
	for r := range t.restores {
		if nd.target[r] {
			t.restores[r].bound = false
		}
	}
	if nd.version != 0 || p.Empties >= 0 {
		old := t
		out(mkRestartOld, 0, n, &old)
	}
	if p.Empties < 0 || int(s.emptied) < p.Empties {
		if to.mark = (mark{}); p.Empties > 0 {
			t.emptied++
		}
		out(mkRestart, 0, n, &t)
	}
}

// busy reports whether an operation writes, or a restore is under way.
func (p marks) busy(s *markState) bool {
	for _, op := range s.ops {
		if op.phase == opWriting {
			return true
		}
	}
	for _, re := range s.restores {
		if re.active {
			return true
		}
	}
	return false
}

func (p marks) othersKnow(s *markState, n int) bool {
	for m := range p.Nodes {
		if m != n && !s.nodes[m].known {
			return false
		}
	}
	return true
}

func (n *markNode) word() uint64 {
	w := uint64(n.version) | uint64(n.floor)<<4 | uint64(n.age)<<8
	flag := func(at int, set bool) {
		if set {
			w |= 1 << at
		}
	}
	flag(12, n.known)
	flag(13, n.counts)
	for i, seen := range n.seen {
		flag(16+i, seen)
	}
	for r := range markRestores {
		flag(24+r, n.target[r])
		w |= uint64(n.read[r]) << (28 + 4*r)
	}
	return w
}

func (m mark) code() uint64 { return uint64(m.version) | uint64(m.floor)<<4 }

type markWords [maxNodes + markOps + 1]uint64

// words packs a state into numbers.
func (s *markState) words(w *markWords) []uint64 {
	rest := uint64(s.restarts) | uint64(s.flushes)<<4 | uint64(s.emptied)<<8
	if at := s.attempt; at.asking {
		rest |= (1 | uint64(at.due)<<1 | uint64(at.left)<<4 | uint64(at.since)<<8) << 16
	}
	for r, x := range s.restores {
		code := x.code() << 2
		if x.active {
			code |= 1
		}
		if x.bound {
			code |= 2
		}
		rest |= code << (32 + 16*r)
	}
	for n := range s.nodes {
		w[n] = s.nodes[n].word()
	}
	for i, op := range s.ops {
		v := uint64(op.kind) | uint64(op.phase)<<4 | uint64(op.left)<<8 | op.code()<<16
		if op.lapsed {
			v |= 1 << 32
		}
		w[maxNodes+i] = v
	}
	w[maxNodes+markOps] = rest
	return w[:]
}

// canonical picks one of the states that differ in names only: nodes in order, under the names of
// restores that give the least.
func (p marks) canonical(s *markState) {
	var w, other markWords
	s.words(&w)
	if p.Restores > 1 {
		swapped := *s
		swapped.restores[0], swapped.restores[1] = s.restores[1], s.restores[0]
		for n := range swapped.nodes {
			nd := &swapped.nodes[n]
			nd.target[0], nd.target[1] = nd.target[1], nd.target[0]
			nd.read[0], nd.read[1] = nd.read[1], nd.read[0]
		}
		swapped.words(&other)
		slices.Sort(w[:p.Nodes])
		slices.Sort(other[:p.Nodes])
		if slices.Compare(other[:], w[:]) < 0 {
			*s = swapped
		}
	}
	slices.SortFunc(s.nodes[:p.Nodes], func(a, b markNode) int { return cmp.Compare(a.word(), b.word()) })
}

func (p marks) identity(s *markState) fingerprint {
	var w markWords
	return hash(s.words(&w))
}

// MarkOutcome is what checking a configuration of the model of marks gave.
type MarkOutcome struct {
	Config MarkConfig
	result[markState]
	Trace string // the counterexample, a line a step
}

// CheckMarks visits all states of a configuration until a property is violated. It uses all
// processors.
func CheckMarks(c MarkConfig) MarkOutcome {
	r := search[markState](marks{c}, runtime.GOMAXPROCS(0), stateLimit)
	return MarkOutcome{c, r, marks{c}.report(r.trace)}
}
