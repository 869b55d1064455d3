package model

import (
	"fmt"
	"strings"
)

// report writes a counterexample, a line a step: what happened, and then what each node has, and
// for how long it has been up while it does not vote; and what each process counts.
func (p members) report(trace []move[memberState]) string {
	var b strings.Builder
	for k, m := range trace {
		if k == 0 {
			continue
		}
		line := fmt.Sprintf("%2d  %-42s", k, p.text(&m))
		for n := range p.nodeCount() {
			nd := &m.state.nodes[n]
			has := nd.ids().String()
			if has == "" {
				has = "-"
			}
			if !p.votes(nd) {
				has += fmt.Sprintf(" up %d", nd.age)
			}
			line += fmt.Sprintf(" %-9s", has)
		}
		for i := range p.Lists {
			if m.state.procs[i].phase == live {
				line += fmt.Sprintf(" %s counts %-4s", procName(i), p.counted(&m.state, i))
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func procName(i int) string { return string(rune('P' + i)) }

func (p members) text(m *move[memberState]) string {
	i, n := procName(int(m.event.attempt)), string(rune('a'+m.event.node))
	switch m.event.kind {
	case memTick:
		return "a tick passes"
	case memTickBack:
		return "a tick passes, the last writes first"
	case memStart:
		return fmt.Sprintf("%s of %v starts with %v", i, p.Lists[m.event.attempt], m.state.procs[m.event.attempt].asked)
	case memWrite:
		return n + " takes what " + i + " writes"
	case memRefused:
		return n + " refuses what " + i + " writes"
	case memAdmit:
		return i + " is admitted"
	case memEnd:
		return i + " ends"
	case memWithdraw:
		return n + " takes back what " + i + " added"
	case memCut:
		return i + " is cut off from " + n
	case memMend:
		return i + " reaches " + n + " again"
	case memRestart:
		return fmt.Sprintf("%s comes back empty, as %v", n, memberSet(1)<<m.state.nodes[m.event.node].id)
	case memAdd:
		return i + " begins to add " + n
	case memAsk:
		return n + " takes what " + i + " adds"
	case memAskRefused:
		return n + " refuses what " + i + " adds"
	default:
		return i + " looks at " + n + ", and writes"
	}
}
