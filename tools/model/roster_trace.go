package model

// report writes a counterexample. For each node it has the processes whose lists it has, and for
// each admitted process the nodes that it counts.
func (p roster) report(trace []move[rosterState]) string {
	return report(trace, func(e event, s *rosterState) (what string, nodes, more []string) {
		counts := make([]nodeSet, len(p.Lists))
		for n := range p.nodeCount() {
			nd, has := &s.nodes[n], ""
			for i := range p.Lists {
				if nd.lists[i].left > 0 {
					has += letter(i)
				}
				if nd.links[i].counted {
					counts[i].set(n)
				}
			}
			nodes = append(nodes, nodeText(has, p.votes(nd), nd.age))
		}
		for i, set := range counts {
			if s.procs[i].phase == live {
				more = append(more, " "+letter(i)+" counts "+set.String())
			}
		}
		return s.procs[e.attempt].asked.String(), nodes, more
	})
}
