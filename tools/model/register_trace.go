package model

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// canonical sorts the nodes, and the restorations that are under way.
func (p registers) canonical(s *regState) {
	if a, b := &s.restores[0], &s.restores[1]; p.Restores > 1 {
		if bytes.Compare(memory(a), memory(b)) < 0 {
			*a, *b = *b, *a
			for n := range s.nodes {
				nd := &s.nodes[n]
				nd.target[0], nd.target[1] = nd.target[1], nd.target[0]
				nd.read[0], nd.read[1] = nd.read[1], nd.read[0]
			}
		}
	}
	slices.SortFunc(s.nodes[:p.Nodes], func(a, b regNode) int { return bytes.Compare(memory(&a), memory(&b)) })
}

// report writes a counterexample, a line a step. A line says what happened, and then what each node
// has: its promise, and the holder and the step of the write. These are in brackets while the node
// does not know the register. While the node does not vote, the ticks since its restart follow.
func (p registers) report(trace []move[regState]) string {
	return lines(trace, func(m *move[regState]) string {
		names := strings.NewReplacer("$a", string(rune('A'+m.event.attempt)), "$n", nodeName(m.event.node), "$r", fmt.Sprintf("restoration %d", m.event.attempt+1))
		line := fmt.Sprintf("%-42s", names.Replace(string(m.event.kind)))
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
