package model

type regRestore struct {
	active, bound bool
	promise       uint8
	has           regValue
}

// regPlain is a plain read, which has to find the write that stood when it began.
type regPlain struct {
	active, done bool
	stood, saw   regValue
}

// restart crashes a node, which comes back empty.
func (p registers) restart(t *regState, n int) {
	nd := &t.nodes[n]
	nd.age, nd.known = 0, nd.known && p.Defect == RegOldIsKnown
	nd.promise, nd.has = 0, regValue{}
	for h := range nd.cells {
		c := &nd.cells[h]
		*c = regCell{counted: c.counted}
	}
	if nd.target {
		t.restore.bound = false
	}
}

func (p registers) restoreSteps(s *regState, out regYield) {
	re := &s.restore
	sources := 0
	for n := range p.Nodes {
		nd := &s.nodes[n]
		t := *s
		switch {
		case !re.active && p.votes(nd) && !nd.known:
			t.restore = regRestore{active: true, bound: true}
			t.nodes[n].target = true
			out(regRestore1, 0, n, &t, none)
		case !re.active || nd.target:
		case nd.read:
			sources++
		case p.votes(nd) && (nd.known || p.Defect == RegUnknowingSources):
			to := &t.restore
			t.nodes[n].read = true
			if nd.has.isAfter(re.has) || p.Defect == RegLastSource {
				to.has = nd.has
			}
			if p.Defect != RegNoPromiseRestored {
				to.promise = max(re.promise, nd.promise)
			}
			out(regSource, 0, n, &t, none)
		}
	}
	for n := range p.Nodes {
		nd := &s.nodes[n]
		if !re.active || !nd.target {
			continue
		}
		t := *s
		to := &t.nodes[n]
		t.restore = regRestore{}
		for m := range t.nodes {
			t.nodes[m].target, t.nodes[m].read = false, false
		}
		if sources >= p.needs(RegFewSources) && (re.bound || p.Defect == RegOtherProcess) && (!nd.known || p.Defect == RegOverKnown) && p.votes(nd) {
			done := t
			d := &done.nodes[n]
			d.known, d.promise, d.has = true, re.promise, re.has
			out(regRestored, 0, n, &done, none)
		}
		if !re.bound || to.known { // the restoration is of no use any more
			out(regGiveUp, 0, n, &t, none)
		}
	}
}

func (p registers) plainSteps(s *regState, out regYield) {
	if !s.plain.active {
		t := *s
		t.plain.active = true
		for h := range p.Holders {
			if v := (regValue{p.ballot(h), s.holders[h].stood, uint8(h)}); v.step > 0 && v.isAfter(t.plain.stood) {
				t.plain.stood = v
			}
		}
		out(regAsk, 0, 0, &t, none)
		return
	}
	heard := 1 + count(s.nodes[:p.Nodes], func(n *regNode) bool { return n.heard })
	for n := range p.Nodes {
		nd := &s.nodes[n]
		if nd.heard || !nd.known || !p.votes(nd) {
			continue
		}
		t := *s
		t.nodes[n].heard = true
		if nd.has.isAfter(t.plain.saw) {
			t.plain.saw = nd.has
		}
		broken := none
		if heard >= p.needs(RegFewPlain) {
			if t.plain.stood.isAfter(t.plain.saw) {
				broken = WhatStandsIsRead
			}
			t.plain = regPlain{done: true}
			for m := range t.nodes {
				t.nodes[m].heard = false
			}
		}
		out(regHear, 0, n, &t, broken)
	}
}
