package model

import "runtime"

const rosterProcs = 3

// rosterState is everything at one moment.
type rosterState struct {
	nodes    [maxNodes]rosterNode
	procs    [rosterProcs]rosterProc
	restarts uint8
	starts   uint8
	excused  uint8 // ticks in which something may be left of one that could not take it back
	stopped  bool  // a process that was admitted has ended for what it has read
}

// rosterNode is one server, its roster, and what lies between it and each process.
type rosterNode struct {
	age   uint8                    // ticks since the restart, up to the gate
	lists [rosterProcs]rosterEntry // of each list, at the first process that has it
	at    [maxNodes]uint8          // for how many ticks each server is known under a name that others have, too
	links [rosterProcs]rosterLink
}

type rosterEntry struct {
	left uint8 // ticks
	by   uint8 // the process that wrote it last
}

type rosterLink struct {
	cut     bool
	took    bool  // the node has what the process wrote on entry
	before  uint8 // for how many ticks it had the list before, and one; 0 for nothing to take back
	counted bool  // its grants count for the process
	silent  uint8 // ticks since the process wrote there
	relied  uint8 // ticks for which a vote may be relied on
}

// rosterProc is a process: idle, acquiring (it enters), ended (it takes back) or live (admitted).
type rosterProc struct {
	phase  phase
	asked  nodeSet // the nodes that must take what it writes
	joins  nodeSet // of those, the ones that no other process knows as another server
	unfair bool    // it began although the fleet's nodes would have refused it
}

// roster is the system of a configuration.
type roster struct{ RosterConfig }

var _ system[rosterState] = roster{}

func (p roster) nodeCount() int {
	all := nodeSet(0)
	for _, l := range p.Lists {
		all |= l
	}
	return all.size()
}

func (p roster) initial() []rosterState {
	var s rosterState
	for n := range p.nodeCount() {
		s.nodes[n].age = uint8(p.Gate)
	}
	return []rosterState{s}
}

// name is what the processes call a server.
func (p roster) name(n int) int {
	if p.Twins && n == 3 {
		return 2
	}
	return n
}

// know notes on a node which server has a name, where that matters: where another one has it, too.
func (p roster) know(nd *rosterNode, n int) {
	if p.Twins && p.name(n) == 2 {
		nd.at[n] = uint8(p.Known)
	}
}

// names are those of a process's list.
func (p roster) names(i int) (m nodeSet) {
	for n := range p.nodeCount() {
		if p.Lists[i].has(n) {
			m.set(p.name(n))
		}
	}
	return m
}

// list is the place of a process's list on a node.
func (p roster) list(i int) int {
	for j := range i {
		if p.names(j) == p.names(i) {
			return j
		}
	}
	return i
}

// The kinds of steps.
const (
	rosTick eventKind = iota
	rosStart
	rosWrite
	rosRefused
	rosAdmit
	rosEnd
	rosWithdraw
	rosCut
	rosMend
	rosRestart
	rosJoin
)

func (p roster) votes(nd *rosterNode) bool { return int(nd.age) >= p.Gate }

// foreign reports whether a node has another list than a process's.
func (p roster) foreign(nd *rosterNode, i int) bool {
	for k, e := range nd.lists {
		if k != p.list(i) && e.left > 0 {
			return true
		}
	}
	return false
}

// twin reports whether a node knows another server under the name of one.
func (p roster) twin(nd *rosterNode, n int) bool {
	for k, left := range nd.at {
		if k != n && left > 0 && p.name(k) == p.name(n) && p.Defect != ServersIgnored {
			return true
		}
	}
	return false
}

// reached are the nodes of a process's list that it reaches.
func (p roster) reached(s *rosterState, i int) (m nodeSet) {
	for n := range p.nodeCount() {
		if p.Lists[i].has(n) && !s.nodes[n].links[i].cut {
			m.set(n)
		}
	}
	return m
}

func (p roster) steps(s *rosterState, yield func(e event, next *rosterState, broken Property)) {
	out := func(kind eventKind, i, n int, t *rosterState) {
		p.settle(t)
		yield(event{kind: kind, attempt: int8(i), node: int8(n)}, t, p.judge(t))
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
			out(rosRestart, 0, n, &t)
		}
	}
	t := *s
	p.tick(&t)
	out(rosTick, 0, 0, &t)
}

// procSteps are those of a process alone: start, be admitted, end.
func (p roster) procSteps(s *rosterState, i int, out func(eventKind, int, int, *rosterState)) {
	pr := &s.procs[i]
	if pr.phase != idle {
		t := *s
		p.end(&t, i, true)
		out(rosEnd, i, 0, &t)
	}
	switch pr.phase {
	case idle:
		if int(s.starts) >= p.Starts {
			break
		}
		var cuts nodeSet
		if i < len(p.Cuts) {
			cuts = p.Cuts[i]
		}
		for away := cuts; ; away = (away - 1) & cuts {
			p.start(s, i, away, out)
			if away == 0 {
				break
			}
		}
	case acquiring:
		took, missing := 0, false
		for n := range p.nodeCount() {
			if l := &s.nodes[n].links[i]; l.took {
				took++
			} else if pr.asked.has(n) && !l.cut {
				missing = true
			}
		}
		if took >= p.Lists[i].quorum() && !missing {
			t := *s
			p.admit(&t, i)
			out(rosAdmit, i, 0, &t)
		}
	}
}

// start begins a process that does not reach some nodes, with a look at all others.
func (p roster) start(s *rosterState, i int, away nodeSet, out func(eventKind, int, int, *rosterState)) {
	t := *s
	t.starts++
	pr := &t.procs[i]
	for n := range p.nodeCount() {
		t.nodes[n].links[i].cut = away.has(n)
	}
	*pr = rosterProc{phase: acquiring, asked: p.reached(&t, i)}
	for n := range p.nodeCount() {
		if pr.asked.has(n) {
			pr.unfair = pr.unfair || p.foreign(&t.nodes[n], i)
			if !p.known(&t, pr.asked, n) {
				pr.joins.set(n)
			}
		}
	}
	if pr.asked.size() >= p.Lists[i].quorum() && (!pr.unfair || p.Defect == NotAsked) {
		out(rosStart, i, 0, &t)
	}
}

// known reports whether any of some nodes knows another server under a server's name.
func (p roster) known(s *rosterState, asked nodeSet, n int) bool {
	for m := range p.nodeCount() {
		if asked.has(m) && p.twin(&s.nodes[m], n) {
			return true
		}
	}
	return false
}

// mayJoin reports whether a process that goes on may count a server again. Where names are servers
// it may at once.
func (p roster) mayJoin(s *rosterState, i, n int) bool {
	asked := p.reached(s, i)
	return !p.Twins || !p.known(s, asked, n)
}

// linkSteps are those of a process at one of its nodes.
func (p roster) linkSteps(s *rosterState, i, n int, out func(eventKind, int, int, *rosterState)) {
	pr, nd := &s.procs[i], &s.nodes[n]
	l := &nd.links[i]
	if pr.phase != idle && i < len(p.Cuts) && p.Cuts[i].has(n) {
		t, kind := *s, rosCut
		if l.cut {
			kind = rosMend
		}
		t.nodes[n].links[i].cut = !l.cut
		out(kind, i, n, &t)
	}
	if l.cut {
		return
	}
	t := *s
	switch {
	case pr.phase == acquiring && pr.asked.has(n) && !l.took:
		kind := rosWrite
		if p.enter(&t, i, n) {
			kind = rosRefused
		}
		out(kind, i, n, &t)
	case pr.phase == ended && l.before > 0:
		p.takeBack(&t.nodes[n], i)
		p.refuse(&t, i)
		out(rosWithdraw, i, n, &t)
	case pr.phase == live && !l.counted && p.mayJoin(s, i, n):
		for m := range p.nodeCount() {
			if p.reached(s, i).has(m) {
				p.know(&t.nodes[m], n)
			}
		}
		t.nodes[n].links[i].counted, t.nodes[n].links[i].silent = true, 0
		out(rosJoin, i, n, &t)
	}
}

// enter writes what a process has on a node, which answers what was there before.
func (p roster) enter(t *rosterState, i, n int) (refused bool) {
	pr, nd := &t.procs[i], &t.nodes[n]
	l, list := &nd.links[i], p.list(i)
	foreign := p.foreign(nd, i)
	l.took, l.before = true, nd.lists[list].left+1
	nd.lists[list] = rosterEntry{uint8(p.Lifetime), uint8(i)}
	for m := range p.nodeCount() {
		switch {
		case !pr.joins.has(m):
		case p.twin(nd, m):
			pr.joins.clear(m)
		default:
			p.know(nd, m)
		}
	}
	switch {
	case !foreign || p.Defect == ReadsFirst:
		return false
	case p.Defect == OthersCounted:
		pr.joins.clear(n)
		return false
	}
	p.refuse(t, i)
	return true
}

// takeBack has a node know a process's list as it did before, if nobody has written it since.
func (p roster) takeBack(nd *rosterNode, i int) {
	e, l := &nd.lists[p.list(i)], &nd.links[i]
	if int(e.by) == i || p.Defect == OthersWithdrawn {
		e.left = l.before - 1
	}
	l.before = 0
}

// admit counts the nodes that took what the process wrote.
func (p roster) admit(t *rosterState, i int) {
	pr := &t.procs[i]
	for n := range p.nodeCount() {
		l := &t.nodes[n].links[i]
		l.counted = l.took && pr.joins.has(n)
		switch {
		case !l.took:
			l.silent = uint8(p.Silence + 1)
		case p.Defect == FromAdmission:
			l.silent = 0
		}
		l.took, l.before = false, 0
	}
	*pr = rosterProc{phase: live}
}

// refuse ends an attempt, once it has taken back what it has added.
func (p roster) refuse(t *rosterState, i int) {
	left := false
	for n := range p.nodeCount() {
		l := &t.nodes[n].links[i]
		l.took, l.silent = false, 0
		left = left || l.before > 0
	}
	t.procs[i].phase, t.procs[i].asked = ended, 0
	if p.Defect == NotWithdrawn || !left {
		p.end(t, i, false)
	}
}

// end makes place for the next process, with or without what this one had of votes.
func (p roster) end(t *rosterState, i int, gone bool) {
	pr := &t.procs[i]
	left := pr.phase == live
	for n := range p.nodeCount() {
		l := &t.nodes[n].links[i]
		left = left || l.before > 0
		relied := l.relied
		if gone {
			relied = 0
		}
		*l = rosterLink{relied: relied}
	}
	if left && p.list(i) != 0 && !pr.unfair && (p.Defect != NotWithdrawn || gone) {
		t.excused = uint8(p.Lifetime)
	}
	*pr = rosterProc{}
}

// restart lets a node come back empty.
func (p roster) restart(t *rosterState, n int) {
	nd := &t.nodes[n]
	nd.age, nd.lists, nd.at = 0, [rosterProcs]rosterEntry{}, [maxNodes]uint8{}
	t.restarts++
	for i := range nd.links {
		nd.links[i].counted, nd.links[i].before = false, 0
		if t.procs[i].phase == ended {
			p.refuse(t, i)
		}
	}
}

// tick lets time pass, and then all admitted processes write what they have.
func (p roster) tick(t *rosterState) {
	t.excused = max(t.excused, 1) - 1
	for n := range p.nodeCount() {
		nd := &t.nodes[n]
		if !p.votes(nd) {
			nd.age++
		}
		for k := range nd.lists {
			if e := &nd.lists[k]; e.left > 1 {
				e.left--
			} else {
				*e = rosterEntry{}
			}
		}
		for k := range nd.at {
			nd.at[k] = max(nd.at[k], 1) - 1
		}
		for i := range p.Lists {
			l := &nd.links[i]
			if l.before > 1 {
				l.before--
			}
			if nd.lists[p.list(i)].left == 0 {
				l.before = 0
			}
			l.relied = max(l.relied, 1) - 1
		}
	}
	for i := range p.Lists {
		p.refresh(t, i)
	}
}

// refresh lets a process write what it has, and ends what took too long.
func (p roster) refresh(t *rosterState, i int) {
	pr, heard, late := &t.procs[i], 0, false
	for n := range p.nodeCount() {
		l := &t.nodes[n].links[i]
		switch {
		case !p.Lists[i].has(n) || pr.phase != live && !l.took:
			continue
		case pr.phase == live && !l.cut:
			l.silent = 0
		case int(l.silent) <= p.Silence:
			l.silent++
		}
		if int(l.silent) <= p.Silence {
			heard++
			continue
		}
		late = true
		l.counted = l.counted && p.Defect == CountsOn
	}
	switch {
	case pr.phase == acquiring && late, pr.phase == ended:
		p.refuse(t, i)
	case pr.phase == live && heard < p.Lists[i].quorum() && p.Defect != CountsOn:
		p.end(t, i, false)
	case pr.phase == live, pr.phase == idle && p.Defect == WaitersRefresh:
		p.say(t, i)
	}
}

// say writes what a process has on the nodes that it reaches.
func (p roster) say(t *rosterState, i int) {
	list, isLive := p.list(i), t.procs[i].phase == live
	for n := range p.nodeCount() {
		nd := &t.nodes[n]
		if !p.reached(t, i).has(n) || !isLive && nd.lists[list].left == 0 {
			continue
		}
		t.stopped = t.stopped || isLive && p.Defect == StepsBack && p.foreign(nd, i)
		nd.lists[list] = rosterEntry{uint8(p.Lifetime), uint8(i)}
		for m := range p.nodeCount() {
			switch l := &t.nodes[m].links[i]; {
			case l.counted && !l.cut:
				p.know(nd, m)
			case p.Defect == ForgottenAtOnce && p.Lists[i].has(m) && !l.cut && !p.votes(&t.nodes[m]):
				nd.at[m] = 0
			}
		}
	}
}

// settle notes the votes that processes may have now.
func (p roster) settle(t *rosterState) {
	for i := range p.Lists {
		for n := range p.nodeCount() {
			nd := &t.nodes[n]
			if l := &nd.links[i]; t.procs[i].phase == live && l.counted && !l.cut && p.votes(nd) {
				l.relied = uint8(p.TTL)
			}
		}
	}
}

// judge returns a property that a state violates.
func (p roster) judge(s *rosterState) Property {
	var votes [rosterProcs]nodeSet
	for i := range p.Lists {
		for n := range p.nodeCount() {
			if s.nodes[n].links[i].relied > 0 {
				votes[i].set(n)
			}
		}
		for j := range i {
			qi, qj := p.Lists[i].quorum(), p.Lists[j].quorum()
			if p.Only != FleetGoesOn && votes[i].size() >= qi && votes[j].size() >= qj && (votes[i]|votes[j]).size() >= qi+qj {
				return OneLock
			}
		}
	}
	if p.Only != OneLock && (s.stopped || s.procs[0].phase == live && s.excused == 0 && p.harmed(s)) {
		return FleetGoesOn
	}
	return none
}

// harmed reports whether a node of the first list has another list, of no process that the fleet
// let begin.
func (p roster) harmed(s *rosterState) bool {
	for i := range p.Lists {
		if p.list(i) != 0 && s.procs[i].phase != idle && !s.procs[i].unfair {
			return false
		}
	}
	for n := range p.nodeCount() {
		if p.Lists[0].has(n) && p.foreign(&s.nodes[n], 0) {
			return true
		}
	}
	return false
}

// canonical does nothing: the processes have their lists, and the nodes their place in them.
func (p roster) canonical(*rosterState) {}

func (p roster) identity(s *rosterState) fingerprint {
	var w [2*maxNodes + rosterProcs + 1]uint64
	w[0] = uint64(s.restarts) | uint64(s.excused)<<8 | uint64(s.starts)<<24 | flags(s.stopped)<<16
	for n := range s.nodes {
		nd := &s.nodes[n]
		a, b := uint64(nd.age), uint64(0)
		for k, e := range nd.lists {
			a |= uint64(e.left)<<(8+6*k) | uint64(e.by)<<(12+6*k)
		}
		for k, left := range nd.at {
			a |= uint64(left) << (32 + 4*k)
		}
		for i, l := range nd.links {
			b |= (flags(l.cut, l.took, l.counted) | uint64(l.before)<<3 | uint64(l.silent)<<6 | uint64(l.relied)<<9) << (16 * i)
		}
		w[2*n+1], w[2*n+2] = a, b
	}
	for i, pr := range s.procs {
		w[2*maxNodes+1+i] = uint64(pr.phase) | uint64(pr.asked)<<8 | uint64(pr.joins)<<16 | flags(pr.unfair)<<24
	}
	return hash(w[:])
}

// RosterOutcome is what checking a configuration of the model of the roster gave.
type RosterOutcome struct {
	Config RosterConfig
	result[rosterState]
	Trace string // the counterexample, a line a step
}

// CheckRoster visits all states of a configuration until a property is violated. It uses all
// processors.
func CheckRoster(c RosterConfig) RosterOutcome {
	r := search[rosterState](roster{c}, runtime.GOMAXPROCS(0), stateLimit)
	return RosterOutcome{c, r, roster{c}.report(r.trace)}
}
