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

// report writes a counterexample. For each node it has the promise, and the holder and the step of
// the write. These are in brackets while the node does not know the register.
func (p registers) report(trace []move[regState]) string {
	return report(trace, func(_ event, s *regState) (what string, nodes, more []string) {
		for n := range s.nodes[:p.Nodes] {
			nd := &s.nodes[n]
			has := fmt.Sprint(nd.promise)
			if nd.has.step > 0 {
				has += fmt.Sprintf(" %s%d", letter(nd.has.by), nd.has.step)
			}
			if !nd.known {
				has = "(" + has + ")"
			}
			nodes = append(nodes, nodeText(has, p.votes(nd), nd.age))
		}
		return what, nodes, more
	})
}
