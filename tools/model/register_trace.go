package model

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// word packs a node into a number.
func (n *regNode) word() uint64 {
	w := uint64(n.age) | uint64(n.promise)<<2 | n.has.code()<<4
	at := 12
	flag := func(set bool) {
		if set {
			w |= 1 << at
		}
		at++
	}
	flag(n.known)
	flag(n.heard)
	for r := range regRestores {
		flag(n.target[r])
		flag(n.read[r])
	}
	for _, c := range n.cells {
		flag(c.asked)
		flag(c.empties)
		flag(c.writes[1])
		flag(c.writes[2])
		flag(c.unknowing)
		flag(c.counted)
	}
	return w
}

type regWords [maxNodes + regHolders + 2]uint64

// words packs a state into numbers.
func (s *regState) words(w *regWords) []uint64 {
	for n := range s.nodes {
		w[n] = s.nodes[n].word()
	}

	for h, ho := range s.holders {
		w[maxNodes+h] = uint64(ho.phase) | uint64(ho.left)<<4 | uint64(ho.stood)<<8 | ho.saw.code()<<12 | flags(ho.isRead, ho.over)<<20
	}
	rest := uint64(0)
	for r, re := range s.restores {
		rest |= (flags(re.active, re.bound) | uint64(re.promise)<<2 | re.has.code()<<4) << (16 * r)
	}
	w[maxNodes+regHolders] = rest
	w[maxNodes+regHolders+1] = uint64(s.restarts) | flags(s.plain.active, s.plain.done)<<4 | s.plain.stood.code()<<8 | s.plain.saw.code()<<16
	return w[:]
}

// canonical puts the nodes in order, and the restorations that are under way.
func (p registers) canonical(s *regState) {
	if a, b := &s.restores[0], &s.restores[1]; p.Restores > 1 {
		code := func(r *regRestore) uint64 {
			c := uint64(r.promise)<<8 | r.has.code()<<12
			if r.active {
				c |= 1
			}
			if r.bound {
				c |= 2
			}
			return c
		}
		if code(a) < code(b) {
			*a, *b = *b, *a
			for n := range s.nodes {
				nd := &s.nodes[n]
				nd.target[0], nd.target[1] = nd.target[1], nd.target[0]
				nd.read[0], nd.read[1] = nd.read[1], nd.read[0]
			}
		}
	}
	slices.SortFunc(s.nodes[:p.Nodes], func(a, b regNode) int { return cmp.Compare(a.word(), b.word()) })
}

func (p registers) identity(s *regState) fingerprint {
	var w regWords
	return hash(s.words(&w))
}

// RegisterOutcome is what checking a configuration of the model of the register gave.
type RegisterOutcome struct {
	Config RegisterConfig
	result[regState]
	Trace string // the counterexample, a line a step
}

// CheckRegister visits all states of a configuration until the register is wrong. It uses all
// processors.
func CheckRegister(c RegisterConfig) RegisterOutcome {
	r := search[regState](registers{c}, runtime.GOMAXPROCS(0), stateLimit)
	return RegisterOutcome{c, r, registers{c}.report(r.trace)}
}

// report writes a counterexample, a line a step: what happened, and then what each node has: its
// promise, and the holder and the step of the write; in brackets while it does not know, and with
// for how long it has been up while it does not vote.
func (p registers) report(trace []move[regState]) string {
	var b strings.Builder
	for k, m := range trace {
		if k == 0 {
			continue
		}
		line := fmt.Sprintf("%2d  %-42s", k, m.event.regText())
		for n := range p.Nodes {
			nd := &m.state.nodes[n]
			has := fmt.Sprintf("%d -", nd.promise)
			if nd.has.step > 0 {
				has = fmt.Sprintf("%d %c%d", nd.promise, 'A'+nd.has.by, nd.has.step)
			}
			if !nd.known {
				has = "(" + has + ")"
			}
			if !p.votes(nd) {
				has += fmt.Sprintf(" up %d", nd.age)
			}
			line += fmt.Sprintf(" %-10s", has)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func (e event) regText() string {
	a, n := string(rune('A'+e.attempt)), nodeName(int(e.node))
	restore := fmt.Sprintf("restoration %d", e.attempt+1)
	switch e.kind {
	case regTick:
		return "a tick passes"
	case regBegin:
		return a + " asks all nodes"
	case regRead:
		return n + " is read by " + a
	case regDecide:
		return a + " has read, and writes"
	case regEmpty:
		return a + " has all restored as empty"
	case regEmptied:
		return n + " is restored as empty for " + a
	case regTake:
		return n + " is written by " + a
	case regStand:
		return "the write of " + a + " stands"
	case regAgain:
		return a + " writes again"
	case regGiveUp:
		return restore + " is given up"
	case regRestart:
		return n + " crashes and comes back"
	case regRestore1:
		return restore + " is begun for " + n
	case regSource:
		return restore + " reads " + n
	case regRestored:
		return restore + " is written to " + n
	case regAsk:
		return "a plain read begins"
	default:
		return "the plain read hears " + n
	}
}
