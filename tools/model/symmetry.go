package model

import "bytes"

// Nodes and attempts differ only in their names. So one of all states that differ only in names is
// enough.
//
// Attempts are sorted first: by their own state, and by what the nodes as a set hold of them. Then
// nodes are sorted by their contents. Attempts that this does not tell apart keep their order. At
// worst a state is then visited twice, under two names.

func (p *protocol) canonical(s *state) {
	if p.exact {
		return
	}
	if p.Attempts > 1 && !p.SharedOwner {
		p.sortAttempts(s)
	}
	for i := 1; i < p.Nodes; i++ {
		for j := i; j > 0 && bytes.Compare(memory(&s.nodes[j]), memory(&s.nodes[j-1])) < 0; j-- {
			s.nodes[j], s.nodes[j-1] = s.nodes[j-1], s.nodes[j]
		}
	}
}

func (p *protocol) sortAttempts(s *state) {
	var keys [maxAttempts]uint64
	var order [maxAttempts]int
	sorted := true
	for i := range p.Attempts {
		keys[i], order[i] = p.signature(s, i), i
		for j := i; j > 0 && keys[order[j]] < keys[order[j-1]]; j-- {
			order[j], order[j-1] = order[j-1], order[j]
			sorted = false
		}
	}
	if sorted {
		return
	}
	was := *s
	var renamed [maxAttempts + 1]uint8
	for to := range p.Attempts {
		from := order[to]
		renamed[from+1] = uint8(to + 1)
		s.attempts[to] = was.attempts[from]
		for n := range p.Nodes {
			s.nodes[n].cells[to] = was.nodes[n].cells[from]
		}
	}
	for n := range p.Nodes {
		s.nodes[n].owner = renamed[was.nodes[n].owner]
	}
}

// signature returns the number by which an attempt is sorted. It does not depend on the names of
// nodes.
func (p *protocol) signature(s *state, i int) uint64 {
	sum := uint64(0)
	for n := range p.Nodes {
		nd := &s.nodes[n]
		w := nd.cells[i].word() | uint64(nd.age)<<24 | uint64(nd.left)<<40 | uint64(uint8(nd.counter))<<48
		if nd.owner == p.owner(i) {
			w |= 1 << 63
		}
		sum += mix(w ^ mix(nd.cells[i].known()))
	}
	return mix(s.attempts[i].word()) ^ sum
}

func mix(w uint64) uint64 {
	w ^= w >> 31
	w *= 0x9fb21c651e98df25
	w ^= w >> 29
	w *= 0x7fb5d329728ea185
	return w ^ w>>32
}
