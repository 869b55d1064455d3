package model

import (
	"fmt"
	"strings"
)

// report writes a counterexample, a line a step: what happened, and then what each node has, in
// brackets where it does not know it, and for how long it has been up while it does not vote. A
// mark is its version and p for paused, r for resumed, or - for none.
func (p marks) report(trace []move[markState]) string {
	var b strings.Builder
	for k, m := range trace {
		if k == 0 {
			continue
		}
		line := fmt.Sprintf("%2d  %-47s", k, p.text(&trace[k-1].state, &m))
		for n := range p.Nodes {
			nd := &m.state.nodes[n]
			has := nd.mark.String()
			if !nd.known {
				has = "(" + has + ")"
			}
			if !p.votes(nd) {
				has += fmt.Sprintf(" up %d", nd.age)
			}
			line += fmt.Sprintf(" %-9s", has)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func (m mark) String() string {
	if m.version == 0 {
		return "-"
	}
	return fmt.Sprintf("%d%c", m.version, "-rp"[m.floor])
}

func (p marks) text(before *markState, m *move[markState]) string {
	e, n := m.event, nodeName(int(m.event.node))
	number := [...]string{"the old number", "the new number"}
	answer, decided := "grants", "has"
	if p.Skips {
		answer, decided = "refuses", "skips"
	}
	name := func(i int) string {
		return fmt.Sprintf("%s %d", [...]string{"pause", "resume", "change"}[m.state.ops[i].kind], i+1)
	}
	op := ""
	if int(e.attempt) < markOps {
		op = name(int(e.attempt))
	}
	restore := fmt.Sprintf("restore %d", e.attempt+1)
	switch e.kind {
	case mkTick:
		text := "a tick passes"
		for i := range p.Operations {
			if before.ops[i].phase == opWaiting && m.state.ops[i].phase == opReturned {
				text += ", and " + name(i) + " returns"
			}
		}
		return text
	case mkAsk:
		return "A asks all nodes for " + number[e.attempt]
	case mkAnswer:
		return fmt.Sprintf("%s %s A %s", n, answer, number[e.attempt])
	case mkDecide:
		return fmt.Sprintf("A %s %s, as %s %s it", decided, number[e.attempt], nodeNames(e.arg), strings.TrimSuffix(answer, "s"))
	case mkBegin:
		return op + " begins"
	case mkLook:
		return fmt.Sprintf("%s reads %s", op, n)
	case mkWrite:
		return fmt.Sprintf("%s takes %s", n, op)
	case mkTaken:
		if m.state.ops[e.attempt].phase == opReturned {
			return op + " returns"
		}
		return op + " has enough nodes, and waits"
	case mkStray:
		return fmt.Sprintf("%s takes %s, late", n, op)
	case mkLapse:
		return op + " loses its lease"
	case mkRestart:
		return n + " crashes and comes back empty"
	case mkRestartOld:
		return n + " crashes and comes back with its data"
	case mkFlush:
		return n + " is flushed"
	case mkRestore:
		return fmt.Sprintf("%s is begun for %s", restore, n)
	case mkRead:
		return fmt.Sprintf("%s reads %s", restore, n)
	case mkRestored:
		return fmt.Sprintf("%s is written to %s", restore, n)
	default:
		return restore + " is given up"
	}
}
