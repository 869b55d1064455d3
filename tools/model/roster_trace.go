package model

import (
	"fmt"
	"strings"
)

// report writes a counterexample, a line a step: what happened, and then whose lists each node has,
// and for how long it has been up while it does not vote; and what each process counts.
func (p roster) report(trace []move[rosterState]) string {
	var b strings.Builder
	for k, m := range trace {
		if k == 0 {
			continue
		}
		line := fmt.Sprintf("%2d  %-42s", k, p.text(&m))
		for n := range p.nodeCount() {
			nd, has := &m.state.nodes[n], ""
			for i, e := range nd.lists {
				if e.left > 0 {
					has += procName(i)
				}
			}
			if has == "" {
				has = "-"
			}
			if !p.votes(nd) {
				has += fmt.Sprintf(" up %d", nd.age)
			}
			line += fmt.Sprintf(" %-7s", has)
		}
		for i := range p.Lists {
			if m.state.procs[i].phase != live {
				continue
			}
			var counted nodeSet
			for n := range p.nodeCount() {
				if m.state.nodes[n].links[i].counted {
					counted.set(n)
				}
			}
			line += fmt.Sprintf(" %s counts %-4s", procName(i), counted)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func procName(i int) string { return string(rune('P' + i)) }

func (p roster) text(m *move[rosterState]) string {
	i, n := procName(int(m.event.attempt)), string(rune('a'+m.event.node))
	switch m.event.kind {
	case rosTick:
		return "a tick passes"
	case rosStart:
		return fmt.Sprintf("%s of %v starts with %v", i, p.Lists[m.event.attempt], m.state.procs[m.event.attempt].asked)
	case rosWrite:
		return n + " takes what " + i + " writes"
	case rosRefused:
		return n + " takes it, and had another list"
	case rosAdmit:
		return i + " is admitted"
	case rosEnd:
		return i + " ends"
	case rosWithdraw:
		return i + " takes back what it wrote to " + n
	case rosCut:
		return i + " is cut off from " + n
	case rosMend:
		return i + " reaches " + n + " again"
	case rosRestart:
		return n + " comes back empty"
	default:
		return i + " counts " + n + " again"
	}
}
