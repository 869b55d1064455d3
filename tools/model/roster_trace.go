package model

import "fmt"

// report writes a counterexample, a line a step. A line says what happened, whose lists each node
// has, and which nodes each admitted process counts. While a node does not vote, the ticks since
// its restart follow its lists.
func (p roster) report(trace []move[rosterState]) string {
	return lines(trace, func(m *move[rosterState]) string {
		i := m.event.attempt
		line := fmt.Sprintf("%-42s", m.event.kind.of(procName(int(i)), string(rune('a'+m.event.node)), m.state.procs[i].asked.String()))
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
		return line
	})
}

func procName(i int) string { return string(rune('P' + i)) }
