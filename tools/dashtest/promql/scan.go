package promql

import (
	"regexp"
	"strings"
)

type kind int

const (
	word kind = iota
	quoted
	number // or a duration
	symbol
)

type token struct {
	kind       kind
	text       string
	start, end int
}

// lexeme matches what an expression consists of. Durations such as 5m and numbers are one kind. A
// word does not begin with a colon, which PromQL would allow, so that [5m:1m] has none.
var lexeme = regexp.MustCompile(`^(?:` +
	`(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` + "`[^`]*`" + `)` +
	`|(?P<number>[0-9][0-9a-zA-Z_.]*(?:[eE][-+]?[0-9]+)?)` +
	`|(?P<word>[a-zA-Z_][a-zA-Z0-9_:]*)` +
	`|(?P<symbol>=~|!~|!=|==|>=|<=|.)` +
	`)`)

// scan takes an expression apart. Comments and blanks are left out.
func scan(expr string) []token {
	var tokens []token
	for at := 0; at < len(expr); {
		rest := expr[at:]
		if blank := len(rest) - len(strings.TrimLeft(rest, " \t\r\n")); blank > 0 {
			at += blank
			continue
		}
		if rest[0] == '#' {
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				at += end
				continue
			}
			break
		}
		groups := lexeme.FindStringSubmatch(rest)
		if groups == nil {
			break
		}
		t := token{text: groups[0], start: at, end: at + len(groups[0])}
		switch {
		case groups[1] != "":
			t.kind = quoted
		case groups[2] != "":
			t.kind = number
		case groups[3] != "":
			t.kind = word
		default:
			t.kind = symbol
		}
		at = t.end
		tokens = append(tokens, t)
	}
	return tokens
}
