// Package promql finds in a PromQL expression what it selects and what it compares. It is no
// parser: whether an expression is one, Prometheus tells.
package promql

import (
	"strings"
)

// Selector is a metric that an expression selects.
type Selector struct {
	Metric   string
	Matchers []Matcher
}

// Matcher is a condition on a label.
type Matcher struct {
	Label string
	Op    string // = != =~ !~
	Value string // as it is in the expression, quotes included
}

// String returns the selector as PromQL.
func (s Selector) String() string {
	if len(s.Matchers) == 0 {
		return s.Metric
	}
	parts := make([]string, len(s.Matchers))
	for i, m := range s.Matchers {
		parts[i] = m.Label + m.Op + m.Value
	}
	return s.Metric + "{" + strings.Join(parts, ", ") + "}"
}

// Without returns the selector without the matchers that drop holds for.
func (s Selector) Without(drop func(Matcher) bool) Selector {
	kept := Selector{Metric: s.Metric}
	for _, m := range s.Matchers {
		if !drop(m) {
			kept.Matchers = append(kept.Matchers, m)
		}
	}
	return kept
}

// lists are the words that a list of labels follows.
var lists = map[string]bool{"by": true, "without": true, "on": true, "ignoring": true, "group_left": true, "group_right": true}

// words are neither metrics nor functions.
var words = map[string]bool{
	"and": true, "or": true, "unless": true, "atan2": true, "bool": true, "offset": true, "start": true, "end": true, "inf": true, "nan": true,
	"sum": true, "min": true, "max": true, "avg": true, "group": true, "stddev": true, "stdvar": true, "count": true,
	"count_values": true, "bottomk": true, "topk": true, "quantile": true,
}

// Selectors returns what an expression selects, each once, in order.
func Selectors(expr string) []Selector {
	var found []Selector
	seen := make(map[string]bool)
	tokens := scan(expr)
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		next := ""
		if i+1 < len(tokens) {
			next = tokens[i+1].text
		}
		var s Selector
		switch {
		case t.kind == word && lists[strings.ToLower(t.text)]:
			if next == "(" {
				i = skipTo(tokens, i+1, ")")
			}
			continue
		case t.kind == word && (words[strings.ToLower(t.text)] || next == "("):
			continue
		case t.kind == word:
			s.Metric = t.text
			if next == "{" {
				i++
				s.Matchers, i = matchers(tokens, i)
			}
		case t.text == "{":
			s.Matchers, i = matchers(tokens, i)
		default:
			continue
		}
		if text := s.String(); !seen[text] {
			seen[text] = true
			found = append(found, s)
		}
	}
	return found
}

// matchers reads what is between the braces that begin at tokens[at], and returns where they end.
func matchers(tokens []token, at int) ([]Matcher, int) {
	end := skipTo(tokens, at, "}")
	var found []Matcher
	for i := at + 1; i+2 < end+1 && i+2 < len(tokens); i++ {
		if tokens[i].kind == word && tokens[i+2].kind == quoted {
			found = append(found, Matcher{Label: tokens[i].text, Op: tokens[i+1].text, Value: tokens[i+2].text})
			i += 2
		}
	}
	return found, end
}

func skipTo(tokens []token, at int, text string) int {
	for at < len(tokens)-1 && tokens[at].text != text {
		at++
	}
	return at
}
