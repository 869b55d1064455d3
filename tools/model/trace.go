package model

import (
	"fmt"
	"strings"
)

// event is a step, for people.
type event struct {
	kind          eventKind
	attempt, node int8
	arg           int8 // a command, a hint, or a set of nodes or attempts
}

type eventKind uint8

const (
	evTick eventKind = iota
	evBegin
	evAskAgain
	evDecide
	evAgreed
	evFail
	evExtend
	evHear
	evRelease
	evRun
	evRefill
	evGone
	evLost
	evLose
	evRestart
	evForget
	evOther
)

// letters names attempts in the order in which they begin. In a state an attempt has a place, which
// another may take after it.
type letters struct {
	of   [maxAttempts]string
	next int
}

func (l *letters) begin(i int8) {
	l.of[i] = string(rune('A' + l.next%26))
	l.next++
}

func nodeName(n int) string { return fmt.Sprintf("n%d", n+1) }

func nodeNames(set int8) string {
	var names []string
	for n := range maxNodes {
		if set>>n&1 == 1 {
			names = append(names, nodeName(n))
		}
	}
	return strings.Join(names, "+")
}

func (c command) String() string {
	switch c {
	case cmdAcquire:
		return "acquire"
	case cmdAgain:
		return "second acquire"
	case cmdAgree:
		return "agree"
	case cmdStale:
		return "old extension"
	case cmdExtend:
		return "extension"
	default:
		return "release"
	}
}

func hintName(h int8) string {
	switch h {
	case hintLow:
		return ", not knowing the time"
	case hintHigh:
		return ", taking it for late"
	default:
		return ""
	}
}

func (e event) text(names *letters) string {
	a, n := names.of[e.attempt], nodeName(int(e.node))
	switch e.kind {
	case evTick:
		return "a tick passes"
	case evBegin:
		return a + " asks all nodes" + hintName(e.arg)
	case evAskAgain:
		return a + " asks " + n + " again"
	case evDecide:
		return a + " has grants of " + nodeNames(e.arg)
	case evAgreed:
		return a + " has a quorum agree on its token"
	case evFail:
		return a + " gives up, and sends releases"
	case evExtend:
		return a + " sends an extension to " + n
	case evHear:
		return a + " hears the answer of " + n
	case evRelease:
		return a + " ends its lease, and sends releases"
	case evRun:
		return fmt.Sprintf("%s runs %s's %v", n, a, command(e.arg))
	case evRefill:
		return fmt.Sprintf("%s runs %s's %v: puts the key back", n, a, command(e.arg))
	case evGone:
		return fmt.Sprintf("%s runs %s's %v: does not have the key", n, a, command(e.arg))
	case evLose:
		return n + " loses the key"
	case evLost:
		return fmt.Sprintf("%s's %v to %s is lost or refused", a, command(e.arg), n)
	case evOther:
		return n + " grants another key that shares the counter"
	case evRestart:
		if e.arg != 0 {
			return n + " crashes, comes back empty, is sent what waits"
		}
		return n + " crashes and comes back empty"
	default:
		return "what is in flight for " + a + " is lost"
	}
}

// text is a state in one line, at a time in ticks.
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
	if forgotten := max(p.floor(), p.lowestCounter()); p.Tokens && (n.counter > forgotten || p.Defect == HintTooLow && n.counter > p.floor()) {
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
		return fmt.Sprintf("  %s asks(%d)", name, a.left)
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

// absolute is a token that does not change as time passes.
func (p *protocol) absolute(v int8, time int) int {
	if p.Defect == NoHint || p.NoClocks {
		return int(v)
	}
	return int(v) + perTick*time
}

// report writes a counterexample, a line a step. Behind each step stands what came of it: for each
// node its key's owner and the ticks until it expires, its counter after #, and for how long it has
// been up while it does not vote; then the attempts with the ticks until their deadlines.
func report(p *protocol, trace []move[state]) string {
	var b strings.Builder
	var names letters
	time := 0
	for k, m := range trace {
		switch {
		case k == 0:
			continue
		case m.event.kind == evTick:
			time++
		case m.event.kind == evBegin:
			names.begin(m.event.attempt)
		}
		line := fmt.Sprintf("%2d  t=%d  %-49s %s", k, time, m.event.text(&names), m.state.text(p, &names, time))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
