package model

import (
	"fmt"
	"strings"
)

// event is a step, as a counterexample shows it.
type event struct {
	kind          eventKind
	attempt, node int8
	arg           int8 // a command, a hint, or a set of nodes or attempts
}

// eventKind is what happens, with $a for the attempt, $n for the node and $x for more.
type eventKind string

// of returns the text of an event.
func (k eventKind) of(a, n, x string) string {
	return strings.NewReplacer("$a", a, "$n", n, "$x", x).Replace(string(k))
}

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

// letters names attempts in the order in which they begin. Attempts may take the same place in a
// state, one after the other.
type letters struct {
	of   [maxAttempts]string
	next int
}

func (l *letters) begin(i int8) {
	l.of[i] = string(rune('A' + l.next%26))
	l.next++
}

func nodeName(n int8) string { return fmt.Sprintf("n%d", n+1) }

func nodeNames(set int8) string {
	var names []string
	for n := range int8(maxNodes) {
		if set>>n&1 == 1 {
			names = append(names, nodeName(n))
		}
	}
	return strings.Join(names, "+")
}

var commandNames = map[command]string{
	cmdSet: "SET", cmdRaise: "ZADD", cmdSetAgain: "second SET", cmdRaiseAgain: "second ZADD",
	cmdAgree: "later ZADD", cmdStale: "old extension", cmdExtend: "extension", cmdRelease: "release",
}

func (e event) text(names *letters) string {
	what := commandNames[command(e.arg)]
	switch e.kind {
	case evDecide, evPropose:
		what = nodeNames(e.arg)
	}
	return e.kind.of(names.of[e.attempt], nodeName(e.node), what)
}

// text returns a state in one line, at a time in ticks.
func (s *state) text(p *protocol, names *letters, time int) string {
	var parts []string
	for n := range p.Nodes {
		parts = append(parts, s.nodes[n].text(p, names, time))
	}
	out := strings.Join(parts, " | ")
	for i := range p.Attempts {
		out += p.attemptText(s, i, names.of[i], time)
	}
	return out
}

func (n *node) text(p *protocol, names *letters, time int) string {
	text := "-"
	if n.owner != 0 {
		text = fmt.Sprintf("%s:%d", names.of[n.owner-1], n.left)
	}
	if p.Tokens && n.counter > p.floor() {
		text += fmt.Sprintf(" #%d", p.absolute(n.counter, time))
	}
	if !p.votes(n) {
		text += fmt.Sprintf(" up %d", n.age)
	}
	return fmt.Sprintf("%-8s", text)
}

func (p *protocol) attemptText(s *state, i int, name string, time int) string {
	a, token := &s.attempts[i], ""
	if p.Tokens {
		token = fmt.Sprintf(" #%d", p.absolute(a.token, time))
	}
	switch a.phase {
	case acquiring:
		return fmt.Sprintf("  %s asks(%d)%s", name, a.left, token)
	case agreeing:
		return fmt.Sprintf("  %s agrees(%d)%s", name, a.left, token)
	case live:
		return fmt.Sprintf("  %s LIVE(%d)%s", name, p.deadline(s, i), token)
	case lapsed:
		return "  " + name + " lapsed"
	default:
		return ""
	}
}

// absolute returns a token as a number that does not change as time passes.
func (p *protocol) absolute(v int8, time int) int {
	if p.uncounted() {
		return int(v)
	}
	return int(v) + perTick*time
}

// report writes a counterexample, a line a step. A line says what happened and what came of it. For
// each node it has the key's owner and the ticks until the key expires, the counter after #, and,
// while the node does not vote, the ticks since its restart. Then come the attempts, with the ticks
// until their deadlines.
func (p *protocol) report(trace []move[state]) string {
	var names letters
	time := 0
	return lines(trace, func(m *move[state]) string {
		switch m.event.kind {
		case evTick:
			time++
		case evBegin:
			names.begin(m.event.attempt)
		}
		return fmt.Sprintf("t=%d  %-49s %s", time, m.event.text(&names), m.state.text(p, &names, time))
	})
}

// lines writes a counterexample, a line a step.
func lines[S any](trace []move[S], text func(*move[S]) string) string {
	var b strings.Builder
	for k := 1; k < len(trace); k++ {
		b.WriteString(strings.TrimRight(fmt.Sprintf("%2d  %s", k, text(&trace[k])), " ") + "\n")
	}
	return b.String()
}
