package model

import "runtime"

const (
	memberProcs = 3
	memberIDs   = maxNodes + 2 // at the beginning, and two more for restarts
)

// memberState is everything at one moment.
type memberState struct {
	nodes    [maxNodes]memberNode
	procs    [memberProcs]memberProc
	restarts uint8
	excused  uint8 // ticks in which something may be left of one that could not take it back
}

// memberNode is one server, and what lies between it and each process.
type memberNode struct {
	id    uint8 // changes with a restart
	age   uint8 // ticks since the restart, up to the gate
	size  uint8 // the number of nodes that who wrote has; 0 if there is no id
	left  [memberIDs]uint8
	links [memberProcs]memberLink
}

type memberLink struct {
	cut     bool
	counted bool      // or, before the admission, taken
	silent  uint8     // ticks since the node took the ids, while it is counted
	relied  uint8     // ticks for which a vote may be relied on
	added   memberSet // ids that the process has added, and nobody has written since
}

// memberProc is a process: idle, acquiring (it writes), ended (it takes back) or live (admitted).
type memberProc struct {
	phase  phase
	asked  memberSet // the ids of the nodes that must take what it writes, all of them
	adding uint8     // the node that is being added, from 1 on
	took   memberSet // the ids of the nodes that took its id
	met    memberSet // the processes with which it had a node in common
	unfair bool      // it began although the fleet's nodes would have refused it
}

// members is the system of a configuration.
type members struct{ MemberConfig }

var _ system[memberState] = members{}

func (p members) nodeCount() int {
	all := memberSet(0)
	for _, l := range p.Lists {
		all |= l
	}
	return all.size()
}

func (p members) initial() []memberState {
	var s memberState
	for n := range p.nodeCount() {
		s.nodes[n] = memberNode{id: uint8(n), age: uint8(p.Gate)}
	}
	return []memberState{s}
}

// The kinds of steps.
const (
	memTick eventKind = iota
	memTickBack
	memStart
	memWrite
	memRefused
	memAdmit
	memEnd
	memWithdraw
	memCut
	memMend
	memRestart
	memAdd
	memAsk
	memAskRefused
	memLook
)

func (p members) votes(n *memberNode) bool { return int(n.age) >= p.Gate }

// ids are those that a node has.
func (n *memberNode) ids() (m memberSet) {
	for id, left := range n.left {
		if left > 0 {
			m.set(id)
		}
	}
	return m
}

// those are the ids of the nodes of a process's list for which ok holds.
func (p members) those(s *memberState, i int, ok func(nd *memberNode, l *memberLink) bool) (m memberSet) {
	for n := range p.nodeCount() {
		if nd := &s.nodes[n]; p.Lists[i].has(n) && ok(nd, &nd.links[i]) {
			m.set(int(nd.id))
		}
	}
	return m
}

// counted are the ids that a process counts, or of nodes that took what it wrote.
func (p members) counted(s *memberState, i int) memberSet {
	return p.those(s, i, func(_ *memberNode, l *memberLink) bool { return l.counted })
}

// reached are the ids that a process finds when it starts.
func (p members) reached(s *memberState, i int) memberSet {
	return p.those(s, i, func(nd *memberNode, l *memberLink) bool {
		return !l.cut && (p.votes(nd) || p.Defect == AdmittedUngated)
	})
}

// refuses reports whether ids of a process are too many for a node.
func (p members) refuses(nd *memberNode, i int, ids memberSet) bool {
	size := p.Lists[i].size()
	if p.Defect != SizesIgnored && nd.size != 0 && int(nd.size) != size {
		return true
	}
	return (nd.ids() | ids).size() > size
}

// write puts ids on a node.
func (p members) write(nd *memberNode, i int, ids memberSet) {
	if nd.size == 0 {
		nd.size = uint8(p.Lists[i].size())
	}
	for id := range memberIDs {
		if !ids.has(id) {
			continue
		}
		nd.left[id] = uint8(p.Lifetime)
		for j := range nd.links {
			if p.Defect != OthersWithdrawn {
				nd.links[j].added.clear(id)
			}
		}
	}
}

// take puts the ids of a process that starts on a node, and remembers which are new.
func (p members) take(nd *memberNode, i int, ids memberSet) {
	before := nd.ids()
	if p.Defect == OldIDsNotRenewed {
		ids &^= before
	}
	p.write(nd, i, ids)
	nd.links[i].added |= ids &^ before
}

// forget removes ids, and the size with the last.
func (n *memberNode) forget(ids memberSet) {
	for id := range n.left {
		if ids.has(id) {
			n.left[id] = 0
		}
	}
	if n.ids() == 0 {
		n.size = 0
	}
}

func (p members) steps(s *memberState, yield func(e event, next *memberState, broken Property)) {
	out := func(kind eventKind, i, n int, t *memberState) {
		p.settle(t)
		e := event{kind: kind, attempt: int8(i), node: int8(n)}
		yield(e, t, p.judge(t))
	}
	for i := range p.Lists {
		p.procSteps(s, i, out)
		for n := range p.nodeCount() {
			if p.Lists[i].has(n) {
				p.linkSteps(s, i, n, out)
			}
		}
	}
	for n := range p.nodeCount() {
		if p.Restart.has(n) && int(s.restarts) < p.Restarts {
			t := *s
			p.restart(&t, n)
			out(memRestart, 0, n, &t)
		}
	}
	t, back := *s, *s
	p.tick(&t, false)
	out(memTick, 0, 0, &t)
	if p.tick(&back, true); back != t {
		out(memTickBack, 0, 0, &back)
	}
}

// procSteps are those of a process alone: start, be admitted, end.
func (p members) procSteps(s *memberState, i int, step func(eventKind, int, int, *memberState)) {
	pr := &s.procs[i]
	if pr.phase != idle {
		t := *s
		p.end(&t, i, true)
		step(memEnd, i, 0, &t)
	}
	switch pr.phase {
	case idle:
		var cuts memberSet
		if i < len(p.Cuts) {
			cuts = p.Cuts[i]
		}
		for out := cuts; ; out = (out - 1) & cuts {
			p.start(s, i, out, step)
			if out == 0 {
				break
			}
		}
	case acquiring:
		taken := p.counted(s, i)
		missing := p.those(s, i, func(nd *memberNode, l *memberLink) bool {
			return pr.asked.has(int(nd.id)) && !l.counted && !l.cut
		})
		if taken.size() >= p.Lists[i].quorum() && missing == 0 && !(p.Patient && p.restarted(s, pr.asked)) {
			t := *s
			p.admit(&t, i)
			step(memAdmit, i, 0, &t)
		}
	}
}

// start begins a process that does not reach some nodes.
func (p members) start(s *memberState, i int, away memberSet, out func(eventKind, int, int, *memberState)) {
	t := *s
	for n := range p.nodeCount() {
		t.nodes[n].links[i].cut = away.has(n)
	}
	ids := p.reached(&t, i)
	refused, waits := false, false
	for n := range p.nodeCount() {
		nd := &t.nodes[n]
		refused = refused || ids.has(int(nd.id)) && p.refuses(nd, i, ids)
		waits = waits || p.Patient && p.Defect != AdmittedUngated && p.Lists[i].has(n) && !away.has(n) && !p.votes(nd)
	}
	if ids.size() >= p.Lists[i].quorum() && !waits && (!refused || p.Defect == NotAsked) {
		t.procs[i] = memberProc{phase: acquiring, asked: ids, met: s.procs[i].met, unfair: refused}
		out(memStart, i, 0, &t)
	}
}

// restarted reports whether the process with one of the ids is gone.
func (p members) restarted(s *memberState, ids memberSet) bool {
	for n := range p.nodeCount() {
		ids.clear(int(s.nodes[n].id))
	}
	return ids != 0
}

// linkSteps are those of a process at one of its nodes.
func (p members) linkSteps(s *memberState, i, n int, out func(eventKind, int, int, *memberState)) {
	pr, nd := &s.procs[i], &s.nodes[n]
	l := &nd.links[i]
	if pr.phase != idle && i < len(p.Cuts) && p.Cuts[i].has(n) {
		t := *s
		kind := memCut
		if l.cut {
			kind = memMend
		}
		t.nodes[n].links[i].cut = !l.cut
		out(kind, i, n, &t)
	}
	if l.cut {
		return
	}
	t := *s
	to := &t.nodes[n]
	switch pr.phase {
	case idle:
		if ids := p.reached(s, i); p.Defect == LookersWrite && ids&^nd.ids() != 0 {
			p.write(to, i, ids)
			out(memLook, i, n, &t)
		}
	case acquiring:
		if !pr.asked.has(int(nd.id)) || l.counted {
			return
		}
		if !p.refuses(nd, i, pr.asked) {
			p.take(to, i, pr.asked)
			to.links[i].counted = true
			out(memWrite, i, n, &t)
			return
		}
		if p.Defect == OthersCounted {
			t.procs[i].asked.clear(int(nd.id))
		} else {
			p.refuse(&t, i)
		}
		out(memRefused, i, n, &t)
	case ended:
		if l.added != 0 {
			to.forget(l.added)
			to.links[i].added = 0
			p.refuse(&t, i)
			out(memWithdraw, i, n, &t)
		}
	case live:
		p.addSteps(s, i, n, out)
	}
}

// addSteps begin to add a node, or ask one of those that must take it.
func (p members) addSteps(s *memberState, i, n int, out func(eventKind, int, int, *memberState)) {
	pr, nd := &s.procs[i], &s.nodes[n]
	t := *s
	to := &t.procs[i]
	if pr.adding == 0 {
		ids := p.counted(s, i)
		if nd.links[i].counted || ids.size() < p.Lists[i].quorum() {
			return
		}
		switch p.Defect {
		case AddedAlone:
			ids = 0
		case AddedByReach:
			ids &= p.reached(s, i)
		}
		to.adding, to.asked = uint8(n+1), ids
		to.asked.set(int(nd.id))
		out(memAdd, i, n, &t)
		return
	}
	if !pr.asked.has(int(nd.id)) || pr.took.has(int(nd.id)) {
		return
	}
	target := &t.nodes[pr.adding-1]
	ids := pr.asked | p.counted(s, i)
	if p.refuses(nd, i, ids) {
		to.giveUp()
		out(memAskRefused, i, n, &t)
		return
	}
	p.write(&t.nodes[n], i, ids)
	if to.took.set(int(nd.id)); to.took == to.asked {
		target.links[i].counted = true
		to.giveUp()
	}
	out(memAsk, i, n, &t)
}

// giveUp ends the addition of a node.
func (pr *memberProc) giveUp() {
	if pr.adding != 0 {
		pr.adding, pr.asked, pr.took = 0, 0, 0
	}
}

// admit counts the nodes that took the ids.
func (p members) admit(t *memberState, i int) {
	pr := &t.procs[i]
	pr.phase, pr.asked, pr.met = live, 0, 0
	for j := range p.Lists {
		t.procs[j].met.clear(i)
		for n := range p.nodeCount() {
			l, other := &t.nodes[n].links[i], &t.nodes[n].links[j]
			l.added = 0
			if j != i && l.counted && (t.procs[j].phase == live && other.counted || other.relied > 0) {
				t.procs[i].met.set(j)
				t.procs[j].met.set(i)
			}
		}
	}
}

// refuse ends an attempt, once it has taken back what it has added.
func (p members) refuse(t *memberState, i int) {
	left := false
	for n := range p.nodeCount() {
		l := &t.nodes[n].links[i]
		if l.counted, l.silent = false, 0; l.added != 0 {
			left = true
		}
	}
	t.procs[i].phase, t.procs[i].asked = ended, 0
	if p.Defect == NotWithdrawn || !left {
		p.end(t, i, false)
	}
}

// end makes place for the next process, with or without what this one had of votes.
func (p members) end(t *memberState, i int, gone bool) {
	pr := &t.procs[i]
	left := pr.phase == live
	for n := range p.nodeCount() {
		l := &t.nodes[n].links[i]
		left = left || l.added != 0
		l.cut, l.counted, l.silent, l.added = false, false, 0, 0
		if gone {
			l.relied = 0
		}
	}
	left = left || p.foreign(t)
	if left && p.Lists[i] != p.Lists[0] && !pr.unfair && (p.Defect != NotWithdrawn || gone) {
		t.excused = uint8(p.Lifetime)
	}
	*pr = memberProc{met: pr.met}
}

// restart lets a node come back empty, with another id.
func (p members) restart(t *memberState, n int) {
	nd := &t.nodes[n]
	nd.id, nd.age, nd.size = uint8(p.nodeCount()+int(t.restarts)), 0, 0
	nd.left = [memberIDs]uint8{}
	t.restarts++
	for i := range nd.links {
		l, pr := &nd.links[i], &t.procs[i]
		l.counted, l.silent, l.added = false, 0, 0
		if int(pr.adding) == n+1 {
			pr.giveUp()
		}
		if pr.phase == ended {
			p.refuse(t, i)
		}
	}
}

// tick lets time pass, and then all admitted processes write what they count, in order or from the
// last to the first.
func (p members) tick(t *memberState, back bool) {
	t.excused = max(t.excused, 1) - 1
	for n := range p.nodeCount() {
		nd := &t.nodes[n]
		if !p.votes(nd) {
			nd.age++
		}
		for id := range nd.left {
			nd.left[id] = max(nd.left[id], 1) - 1
		}
		nd.forget(0)
		for i := range p.Lists {
			l := &nd.links[i]
			l.added &= nd.ids()
			l.relied = max(l.relied, 1) - 1
		}
	}
	for k := range p.Lists {
		i := k
		if back {
			i = len(p.Lists) - 1 - k
		}
		p.refresh(t, i)
	}
}

// refresh lets a process write what it counts, drops what has been silent, and ends what took too
// long.
func (p members) refresh(t *memberState, i int) {
	pr := &t.procs[i]
	pr.giveUp()
	late := false
	for n := range p.nodeCount() {
		l := &t.nodes[n].links[i]
		switch {
		case !l.counted:
		case pr.phase == live && !l.cut:
			l.silent = 0
		case int(l.silent) < p.Silence:
			l.silent++
		case p.Defect != CountsOn || pr.phase != live:
			l.counted, l.silent, late = false, 0, true
		}
	}
	switch {
	case pr.phase == acquiring && late:
		p.refuse(t, i)
		return
	case pr.phase == ended:
		p.refuse(t, i)
		return
	case pr.phase == live && p.counted(t, i).size() < p.Lists[i].quorum() && p.Defect != CountsOn:
		p.end(t, i, false)
		return
	case pr.phase != live && p.Defect != WaitersRefresh:
		return
	}
	ids := p.those(t, i, func(_ *memberNode, l *memberLink) bool {
		return l.counted && !(l.cut && (p.Defect == RefreshedByReach || p.Defect == CountsOn))
	})
	for n := range p.nodeCount() {
		nd := &t.nodes[n]
		mine := ids
		mine.set(int(nd.id))
		switch l := &nd.links[i]; {
		case !p.Lists[i].has(n) || l.cut:
		case pr.phase != live:
			p.write(nd, i, p.reached(t, i)&nd.ids())
		case l.counted:
			p.write(nd, i, ids)
		case !p.refuses(nd, i, mine) && p.Defect != RestartedUnclaimed:
			p.write(nd, i, mine)
		}
	}
}

// settle notes the votes that processes may have now, and forgets what is of no account any more.
func (p members) settle(t *memberState) {
	for i := range p.Lists {
		relied := false
		for n := range p.nodeCount() {
			nd := &t.nodes[n]
			l := &nd.links[i]
			if t.procs[i].phase == live && l.counted && !l.cut && p.votes(nd) {
				l.relied = uint8(p.TTL)
			}
			relied = relied || l.relied > 0
		}
		if t.procs[i].phase != live && !relied {
			t.procs[i].met = 0
			for j := range p.Lists {
				t.procs[j].met.clear(i)
			}
		}
	}
}

// judge returns a property that a state violates.
func (p members) judge(s *memberState) Property {
	var votes [memberProcs]memberSet
	for i := range p.Lists {
		for n := range p.nodeCount() {
			if s.nodes[n].links[i].relied > 0 {
				votes[i].set(n)
			}
		}
		for j := range i {
			qi, qj := p.Lists[i].quorum(), p.Lists[j].quorum()
			if p.Only != FleetGoesOn && (p.Strangers || s.procs[i].met.has(j)) &&
				votes[i].size() >= qi && votes[j].size() >= qj && (votes[i]|votes[j]).size() >= qi+qj {
				return OneLock
			}
		}
	}
	if p.Only != OneLock && s.procs[0].phase == live && s.excused == 0 && p.harmed(s) {
		return FleetGoesOn
	}
	return none
}

// harmed reports whether a node of the first list has an id of another one's, of no process that
// the fleet let begin.
func (p members) harmed(s *memberState) bool {
	for i, l := range p.Lists {
		if l != p.Lists[0] && s.procs[i].phase != idle && !s.procs[i].unfair {
			return false
		}
	}
	return p.foreign(s)
}

// foreign reports whether a node of the first list has an id that is of none of its nodes.
func (p members) foreign(s *memberState) bool {
	var ids memberSet
	for n := range p.nodeCount() {
		if !p.Lists[0].has(n) {
			ids.set(int(s.nodes[n].id))
			ids.set(n)
		}
	}
	for n := range p.nodeCount() {
		if p.Lists[0].has(n) && s.nodes[n].ids()&ids != 0 {
			return true
		}
	}
	return false
}

// words packs a state into numbers.
func (s *memberState) words(w *[2*maxNodes + memberProcs + 1]uint64) []uint64 {
	w[0] = uint64(s.restarts) | uint64(s.excused)<<8
	for n := range s.nodes {
		nd := &s.nodes[n]
		a := uint64(nd.id) | uint64(nd.age)<<8 | uint64(nd.size)<<16
		for id, left := range nd.left {
			a |= uint64(left) << (24 + 4*id)
		}
		b := uint64(0)
		for i, l := range nd.links {
			c := uint64(l.silent)<<2 | uint64(l.relied)<<5 | uint64(l.added)<<8
			if l.cut {
				c |= 1
			}
			if l.counted {
				c |= 2
			}
			b |= c << (16 * i)
		}
		w[2*n+1], w[2*n+2] = a, b
	}
	for i, pr := range s.procs {
		v := uint64(pr.phase) | uint64(pr.asked)<<8 | uint64(pr.adding)<<16 | uint64(pr.took)<<24 | uint64(pr.met)<<32
		if pr.unfair {
			v |= 1 << 40
		}
		w[2*maxNodes+1+i] = v
	}
	return w[:]
}

// canonical does nothing: the processes have their lists, and the nodes their place in them.
func (p members) canonical(*memberState) {}

func (p members) identity(s *memberState) fingerprint {
	var w [2*maxNodes + memberProcs + 1]uint64
	return hash(s.words(&w))
}

// MemberOutcome is what checking a configuration of the model of members gave.
type MemberOutcome struct {
	Config MemberConfig
	result[memberState]
	Trace string // the counterexample, a line a step
}

// CheckMembers visits all states of a configuration until a property is violated. It uses all
// processors.
func CheckMembers(c MemberConfig) MemberOutcome {
	r := search[memberState](members{c}, runtime.GOMAXPROCS(0), stateLimit)
	return MemberOutcome{c, r, members{c}.report(r.trace)}
}
