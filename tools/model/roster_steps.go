package model

// procSteps yields the steps of a process alone: it starts, is admitted or ends.
func (p roster) procSteps(s *rosterState, i int, out func(eventKind, int, int, *rosterState)) {
	pr := &s.procs[i]
	if pr.phase != idle {
		t := *s
		p.end(&t, i, true)
		out(rosEnd, i, 0, &t)
	}
	switch pr.phase {
	case idle:
		if int(s.starts) >= p.Starts {
			break
		}
		var cuts nodeSet
		if i < len(p.Cuts) {
			cuts = p.Cuts[i]
		}
		for away := cuts; ; away = (away - 1) & cuts {
			p.start(s, i, away, out)
			if away == 0 {
				break
			}
		}
	case acquiring:
		took, missing := 0, false
		for n := range p.nodeCount() {
			if l := &s.nodes[n].links[i]; l.took {
				took++
			} else if pr.asked.has(n) && !l.cut {
				missing = true
			}
		}
		if took >= p.Lists[i].quorum() && !missing {
			t := *s
			p.admit(&t, i)
			out(rosAdmit, i, 0, &t)
		}
	}
}

// start starts a process that does not reach the nodes of away. The process looks at all others of
// its list, and goes on if a quorum is among them and none has another list.
func (p roster) start(s *rosterState, i int, away nodeSet, out func(eventKind, int, int, *rosterState)) {
	t := *s
	t.starts++
	pr := &t.procs[i]
	for n := range p.nodeCount() {
		t.nodes[n].links[i].cut = away.has(n)
	}
	*pr = rosterProc{phase: acquiring, asked: p.reached(&t, i)}
	for n := range pr.asked.all {
		pr.unfair = pr.unfair || p.foreign(&t.nodes[n], i)
		if !p.known(&t, pr.asked, n) {
			pr.joins.set(n)
		}
	}
	if pr.asked.size() >= p.Lists[i].quorum() && (!pr.unfair || p.Defect == NotAsked) {
		out(rosStart, i, 0, &t)
	}
}

// known reports whether any of the asked nodes knows another server under the name of server n.
func (p roster) known(s *rosterState, asked nodeSet, n int) bool {
	for m := range asked.all {
		if p.twin(&s.nodes[m], n) {
			return true
		}
	}
	return false
}

// linkSteps yields the steps of a process at one of its nodes.
func (p roster) linkSteps(s *rosterState, i, n int, out func(eventKind, int, int, *rosterState)) {
	pr, nd := &s.procs[i], &s.nodes[n]
	l := &nd.links[i]
	if pr.phase != idle && i < len(p.Cuts) && p.Cuts[i].has(n) {
		t, kind := *s, rosCut
		if l.cut {
			kind = rosMend
		}
		t.nodes[n].links[i].cut = !l.cut
		out(kind, i, n, &t)
	}
	if l.cut {
		return
	}
	t := *s
	switch {
	case pr.phase == acquiring && pr.asked.has(n) && !l.took:
		kind := rosWrite
		if p.enter(&t, i, n) {
			kind = rosRefused
		}
		out(kind, i, n, &t)
	case pr.phase == ended && l.before > 0:
		p.takeBack(&t.nodes[n], i)
		p.refuse(&t, i)
		out(rosWithdraw, i, n, &t)
	case pr.phase == live && !l.counted && !p.known(s, p.reached(s, i), n):
		for m := range p.reached(s, i).all {
			p.know(&t.nodes[m], n)
		}
		t.nodes[n].links[i].counted, t.nodes[n].links[i].silent = true, 0
		out(rosJoin, i, n, &t)
	}
}

// enter writes a process's list and servers to a node, which answers what it had before. It reports
// whether the answer ends the attempt.
func (p roster) enter(t *rosterState, i, n int) (refused bool) {
	pr, nd := &t.procs[i], &t.nodes[n]
	l, list := &nd.links[i], p.list(i)
	foreign := p.foreign(nd, i)
	l.took, l.before = true, nd.lists[list].left+1
	nd.lists[list] = rosterEntry{uint8(p.Lifetime), uint8(i)}
	for m := range pr.joins.all {
		if p.twin(nd, m) {
			pr.joins.clear(m)
		} else {
			p.know(nd, m)
		}
	}
	switch {
	case !foreign || p.Defect == ReadsFirst:
		return false
	case p.Defect == OthersCounted:
		pr.joins.clear(n)
		return false
	}
	p.refuse(t, i)
	return true
}

// takeBack has a node know a process's list as long as it did before, unless another process has
// written the list since.
func (p roster) takeBack(nd *rosterNode, i int) {
	e, l := &nd.lists[p.list(i)], &nd.links[i]
	if int(e.by) == i || p.Defect == OthersWithdrawn {
		e.left = l.before - 1
	}
	l.before = 0
}

// admit counts the nodes that took what the process wrote.
func (p roster) admit(t *rosterState, i int) {
	pr := &t.procs[i]
	for n := range p.nodeCount() {
		l := &t.nodes[n].links[i]
		l.counted = l.took && pr.joins.has(n)
		switch {
		case !l.took:
			l.silent = uint8(p.Silence + 1)
		case p.Defect == FromAdmission:
			l.silent = 0
		}
		l.took, l.before = false, 0
	}
	*pr = rosterProc{phase: live}
}

// refuse ends an attempt. The process ends too if it has nothing left to take back.
func (p roster) refuse(t *rosterState, i int) {
	left := false
	for n := range p.nodeCount() {
		l := &t.nodes[n].links[i]
		l.took, l.silent = false, 0
		left = left || l.before > 0
	}
	t.procs[i].phase, t.procs[i].asked = ended, 0
	if p.Defect == NotWithdrawn || !left {
		p.end(t, i, false)
	}
}

// end ends a process and makes place for the next. If it is gone, its votes are relied on no more.
func (p roster) end(t *rosterState, i int, gone bool) {
	pr := &t.procs[i]
	left := pr.phase == live
	for n := range p.nodeCount() {
		l := &t.nodes[n].links[i]
		left = left || l.before > 0
		relied := l.relied
		if gone {
			relied = 0
		}
		*l = rosterLink{relied: relied}
	}
	if left && p.list(i) != 0 && !pr.unfair && (p.Defect != NotWithdrawn || gone) {
		t.excused = uint8(p.Lifetime)
	}
	*pr = rosterProc{}
}

// restart crashes a node, which comes back empty.
func (p roster) restart(t *rosterState, n int) {
	nd := &t.nodes[n]
	nd.age, nd.lists, nd.at = 0, [rosterProcs]rosterEntry{}, [maxNodes]uint8{}
	t.restarts++
	for i := range nd.links {
		nd.links[i].counted, nd.links[i].before = false, 0
		if t.procs[i].phase == ended {
			p.refuse(t, i)
		}
	}
}

// tick lets time pass, and then all admitted processes write their lists and servers again.
func (p roster) tick(t *rosterState) {
	t.excused = less(t.excused)
	for n := range p.nodeCount() {
		nd := &t.nodes[n]
		if !p.votes(nd) {
			nd.age++
		}
		for k := range nd.lists {
			if e := &nd.lists[k]; e.left > 1 {
				e.left--
			} else {
				*e = rosterEntry{}
			}
		}
		for k := range nd.at {
			nd.at[k] = less(nd.at[k])
		}
		for i := range p.Lists {
			l := &nd.links[i]
			if l.before > 1 {
				l.before--
			}
			if nd.lists[p.list(i)].left == 0 {
				l.before = 0
			}
			l.relied = less(l.relied)
		}
	}
	for i := range p.Lists {
		p.refresh(t, i)
	}
}

// refresh lets an admitted process write its list and servers again. It ends a process that has not
// reached a quorum for too long, and an attempt that took too long.
func (p roster) refresh(t *rosterState, i int) {
	pr, heard, late := &t.procs[i], 0, false
	for n := range p.nodeCount() {
		l := &t.nodes[n].links[i]
		switch {
		case !p.Lists[i].has(n) || pr.phase != live && !l.took:
			continue
		case pr.phase == live && !l.cut:
			l.silent = 0
		case int(l.silent) <= p.Silence:
			l.silent++
		}
		if int(l.silent) <= p.Silence {
			heard++
			continue
		}
		late = true
		l.counted = l.counted && p.Defect == CountsOn
	}
	switch {
	case pr.phase == acquiring && late, pr.phase == ended:
		p.refuse(t, i)
	case pr.phase == live && heard < p.Lists[i].quorum() && p.Defect != CountsOn:
		p.end(t, i, false)
	case pr.phase == live, pr.phase == idle && p.Defect == WaitersRefresh:
		p.say(t, i)
	}
}

// say writes a process's list and servers to the nodes that it reaches.
func (p roster) say(t *rosterState, i int) {
	list, isLive := p.list(i), t.procs[i].phase == live
	for n := range p.reached(t, i).all {
		nd := &t.nodes[n]
		if !isLive && nd.lists[list].left == 0 {
			continue
		}
		t.stopped = t.stopped || isLive && p.Defect == StepsBack && p.foreign(nd, i)
		nd.lists[list] = rosterEntry{uint8(p.Lifetime), uint8(i)}
		for m := range p.nodeCount() {
			switch l := &t.nodes[m].links[i]; {
			case l.counted && !l.cut:
				p.know(nd, m)
			case p.Defect == ForgottenAtOnce && p.Lists[i].has(m) && !l.cut && !p.votes(&t.nodes[m]):
				nd.at[m] = 0
			}
		}
	}
}

// settle notes the votes that processes may have now.
func (p roster) settle(t *rosterState) {
	for i := range p.Lists {
		for n := range p.nodeCount() {
			nd := &t.nodes[n]
			if l := &nd.links[i]; t.procs[i].phase == live && l.counted && !l.cut && p.votes(nd) {
				l.relied = uint8(p.TTL)
			}
		}
	}
}
