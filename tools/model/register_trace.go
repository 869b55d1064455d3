package model

import (
	"bytes"
	"fmt"
	"slices"
)

// canonical sorts the nodes.
func (p registers) canonical(s *regState) {
	slices.SortFunc(s.nodes[:p.Nodes], func(a, b regNode) int { return bytes.Compare(memory(&a), memory(&b)) })
}

// report writes a counterexample, a line a step. A line says what happened, and then what each node
// has: its promise, and the holder and the step of the write. These are in brackets while the node
// does not know the register. While the node does not vote, the ticks since its restart follow.
func (p registers) report(trace []move[regState]) string {
	return lines(trace, func(m *move[regState]) string {
		line := fmt.Sprintf("%-42s", m.event.kind.of(string(rune('A'+m.event.attempt)), nodeName(m.event.node), ""))
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
		return line
	})
}
