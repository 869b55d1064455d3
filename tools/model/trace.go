package model

import (
	"cmp"
	"fmt"
	"strings"
)

// event is a step, as a counterexample shows it.
type event struct {
	kind          eventKind
	attempt, node int8
	arg           int8 // a command, or a set of nodes
}

// eventKind is what happens, with $a for the attempt, $n for the node and $x for more.
type eventKind string

// text returns an event in words. Attempts, holders and processes are A, B and C, after their
// places in the state, which a later one may take again. Nodes are n1, n2 and so on.
func (e event) text(x string) string {
	return strings.NewReplacer("$a", letter(e.attempt), "$n", fmt.Sprint("n", e.node+1), "$x", x).Replace(string(e.kind))
}

func letter[N int | int8 | uint8](i N) string { return string(rune('A' + i)) }

const (
	evTick        eventKind = "a tick passes"
	evBegin       eventKind = "$a asks all nodes"
	evAskAgain    eventKind = "$a asks $n again"
	evDecide      eventKind = "$a has grants of $x"
	evPropose     eventKind = "$a proposes more to $x"
	evFail        eventKind = "$a gives up, and sends releases"
	evExtend      eventKind = "$a sends an extension to $n"
	evHear        eventKind = "$a hears the answer of $n"
	evRelease     eventKind = "$a ends its lease, and sends releases"
	evRun         eventKind = "$n runs $a's $x"
	evRefill      eventKind = "$n runs $a's $x: puts the key back"
	evRefused     eventKind = "$n runs $a's $x: another has the key"
	evGone        eventKind = "$n runs $a's $x: does not have the key"
	evLost        eventKind = "$a's $x to $n is lost or refused"
	evLose        eventKind = "$n loses the key"
	evRestart     eventKind = "$n crashes and comes back empty"
	evRestartSent eventKind = "$n crashes, comes back empty, is sent what waits"
	evForget      eventKind = "what is in flight for $a is lost"
	evOther       eventKind = "$n grants another key that shares the counter"
)

var commandNames = map[command]string{
	cmdSet: "SET", cmdRaise: "ZADD", cmdSetAgain: "second SET", cmdRaiseAgain: "second ZADD",
	cmdAgree: "later ZADD", cmdStale: "old extension", cmdExtend: "extension", cmdRelease: "release",
}

var phaseNames = map[phase]string{acquiring: "asks", agreeing: "agrees", live: "LIVE", lapsed: "lapsed"}

// report writes a counterexample. For each node it has the key's owner and the ticks until the key
// expires, and the counter after #. Then come the attempts, with the ticks until their deadlines.
func (p *protocol) report(trace []move[state]) string {
	time := 0
	return report(trace, func(e event, s *state) (what string, nodes, more []string) {
		switch what = commandNames[command(e.arg)]; e.kind {
		case evTick:
			time++
		case evDecide, evPropose:
			what = nodeSet(e.arg).String()
		}
		token := func(v int8) string { return fmt.Sprintf("#%d", p.absolute(v, time)) }
		for n := range s.nodes[:p.Nodes] {
			nd, has := &s.nodes[n], "-"
			if nd.owner != 0 {
				has = fmt.Sprintf("%s:%d", letter(nd.owner-1), nd.left)
			}
			if p.Tokens && nd.counter > p.floor() {
				has += " " + token(nd.counter)
			}
			nodes = append(nodes, nodeText(has, p.votes(nd), nd.age))
		}
		for i := range p.Attempts {
			a := &s.attempts[i]
			is, left := phaseNames[a.phase], a.left
			if a.phase == live {
				left = p.deadline(s, i)
			}
			if is != "" {
				more = append(more, fmt.Sprintf(" %s %s(%d)", letter(i), is, left))
			}
			if is != "" && p.Tokens {
				more = append(more, token(a.token))
			}
		}
		return what, nodes, more
	})
}

// absolute returns a token as a number that does not change as time passes.
func (p *protocol) absolute(v int8, time int) int {
	if p.uncounted() {
		return int(v)
	}
	return int(v) + perTick*time
}

// report writes a counterexample, a line a step. A line says what happened, with what for its $x,
// then what the nodes have, and then more.
func report[S any](trace []move[S], step func(event, *S) (what string, nodes, more []string)) string {
	var b strings.Builder
	for k := 1; k < len(trace); k++ {
		m := &trace[k]
		what, nodes, more := step(m.event, &m.state)
		line := fmt.Sprintf("%2d  %-49s %s %s", k, m.event.text(what), strings.Join(nodes, " | "), strings.Join(more, " "))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

// nodeText returns what a node has, and, while it does not vote, the ticks since its restart.
func nodeText(has string, votes bool, age uint8) string {
	has = cmp.Or(has, "-")
	if !votes {
		has += fmt.Sprintf(" up %d", age)
	}
	return fmt.Sprintf("%-8s", has)
}
