package model

const rosterProcs = 3

// rosterState is the whole system at one moment.
type rosterState struct {
	nodes    [maxNodes]rosterNode
	procs    [rosterProcs]rosterProc
	restarts uint8
	starts   uint8
	excused  uint8 // ticks in which the list of a process may be left that could not take it back
	stopped  bool  // an admitted process has ended because of what it has read
}

// rosterNode is one server, its roster, and its links to the processes.
type rosterNode struct {
	age   uint8                    // ticks since the restart, up to the gate
	lists [rosterProcs]rosterEntry // each list is at the index of the first process that has it
	at    [maxNodes]uint8          // ticks for which a server is known under a name that another one has, too
	links [rosterProcs]rosterLink
}

type rosterEntry struct {
	left uint8 // ticks
	by   uint8 // the process that wrote it last
}

type rosterLink struct {
	cut     bool
	took    bool  // the node has what the process wrote on entry
	before  uint8 // ticks for which the node had the list before, plus one; 0 for nothing to take back
	counted bool  // the node's grants count for the process
	silent  uint8 // ticks since the process wrote there
	relied  uint8 // ticks for which a vote may be relied on
}

// rosterProc is a process: idle, acquiring (it enters), ended (it takes back) or live (admitted).
type rosterProc struct {
	phase  phase
	asked  nodeSet // the nodes that must take what it writes
	joins  nodeSet // the servers among them whose names these nodes know for no other server
	unfair bool    // it began although the fleet's nodes would have refused it
}

// roster is the system that a configuration describes.
type roster struct{ RosterConfig }

var _ system[rosterState] = roster{}

func (p roster) nodeCount() int {
	all := nodeSet(0)
	for _, l := range p.Lists {
		all |= l
	}
	return all.size()
}

func (p roster) initial() rosterState {
	var s rosterState
	for n := range p.nodeCount() {
		s.nodes[n].age = uint8(p.Gate)
	}
	return s
}

// name returns the number of a server's name. With Twins, servers 2 and 3 have one name.
func (p roster) name(n int) int {
	if p.Twins && n == 3 {
		return 2
	}
	return n
}

// know notes on a node that a server has its name, if another server has that name, too.
func (p roster) know(nd *rosterNode, n int) {
	if p.Twins && p.name(n) == 2 {
		nd.at[n] = uint8(p.Known)
	}
}

// names returns the names of the servers in a process's list.
func (p roster) names(i int) (m nodeSet) {
	for n := range p.Lists[i].all {
		m.set(p.name(n))
	}
	return m
}

// list returns the index of a process's list on a node.
func (p roster) list(i int) int {
	for j := range i {
		if p.names(j) == p.names(i) {
			return j
		}
	}
	return i
}

// The kinds of steps, with $a for the process, $n for the node and $x for what it reaches.
const (
	rosTick     eventKind = "a tick passes"
	rosStart    eventKind = "$a starts with $x"
	rosWrite    eventKind = "$n takes what $a writes"
	rosRefused  eventKind = "$n takes it, and had another list"
	rosAdmit    eventKind = "$a is admitted"
	rosEnd      eventKind = "$a ends"
	rosWithdraw eventKind = "$a takes back what it wrote to $n"
	rosCut      eventKind = "$a is cut off from $n"
	rosMend     eventKind = "$a reaches $n again"
	rosRestart  eventKind = "$n comes back empty"
	rosJoin     eventKind = "$a counts $n again"
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

// twin reports whether a node knows another server under the name of server n.
func (p roster) twin(nd *rosterNode, n int) bool {
	for k, left := range nd.at {
		if k != n && left > 0 && p.name(k) == p.name(n) && p.Defect != ServersIgnored {
			return true
		}
	}
	return false
}

// reached returns the nodes of a process's list that it reaches.
func (p roster) reached(s *rosterState, i int) (m nodeSet) {
	for n := range p.Lists[i].all {
		if !s.nodes[n].links[i].cut {
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
		for n := range p.Lists[i].all {
			p.linkSteps(s, i, n, out)
		}
	}
	for n := range p.Restart.all {
		if int(s.restarts) < p.Restarts {
			t := *s
			p.restart(&t, n)
			out(rosRestart, 0, n, &t)
		}
	}
	t := *s
	p.tick(&t)
	out(rosTick, 0, 0, &t)
}

// judge returns a property that a state violates, or none.
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

// harmed reports whether a node of the first list has another list, although no process with
// another list is running that the fleet let begin.
func (p roster) harmed(s *rosterState) bool {
	for i := range p.Lists {
		if p.list(i) != 0 && s.procs[i].phase != idle && !s.procs[i].unfair {
			return false
		}
	}
	for n := range p.Lists[0].all {
		if p.foreign(&s.nodes[n], 0) {
			return true
		}
	}
	return false
}

// canonical does nothing: processes differ in their lists, and nodes in their places in these
// lists.
func (p roster) canonical(*rosterState) {}
