package promql

import (
	"strings"
)

// comparisons are the operators that filter.
var comparisons = map[string]bool{"==": true, "!=": true, ">": true, "<": true, ">=": true, "<=": true}

// Operands returns what an alert's expression compares: the operands of and, or and unless, without
// parentheses around them and without the comparison at their end. They have a value also while the
// alert is quiet.
func Operands(expr string) []string {
	parts := split(strings.TrimSpace(expr))
	if len(parts) == 1 {
		inner, whole := unwrap(parts[0])
		if whole {
			return Operands(inner)
		}
		if left := uncompared(parts[0]); left != parts[0] {
			return Operands(left)
		}
		return parts
	}
	var all []string
	for _, part := range parts {
		all = append(all, Operands(part)...)
	}
	return all
}

// split splits at and, or and unless outside of parentheses.
func split(expr string) []string {
	tokens := scan(expr)
	depth, begin := 0, 0
	var parts []string
	for i := 0; i < len(tokens); i++ {
		t := tokens[i]
		depth += nesting(t)
		if depth != 0 || t.kind != word {
			continue
		}
		switch strings.ToLower(t.text) {
		case "and", "or", "unless":
			parts = append(parts, strings.TrimSpace(expr[begin:t.start]))
			if i+2 < len(tokens) && lists[strings.ToLower(tokens[i+1].text)] && tokens[i+2].text == "(" {
				i = skipTo(tokens, i+2, ")")
			}
			begin = tokens[i].end
		}
	}
	return append(parts, strings.TrimSpace(expr[begin:]))
}

// uncompared cuts the last comparison outside of parentheses and what follows it.
func uncompared(expr string) string {
	depth, cut := 0, len(expr)
	for _, t := range scan(expr) {
		depth += nesting(t)
		if depth == 0 && comparisons[t.text] {
			cut = t.start
		}
	}
	return strings.TrimSpace(expr[:cut])
}

// unwrap takes away the parentheses around all of an expression.
func unwrap(expr string) (inner string, whole bool) {
	tokens := scan(expr)
	if len(tokens) < 2 || tokens[0].text != "(" {
		return expr, false
	}
	depth := 0
	for i, t := range tokens {
		depth += nesting(t)
		if depth == 0 {
			if i != len(tokens)-1 {
				return expr, false
			}
			return strings.TrimSpace(expr[tokens[0].end:t.start]), true
		}
	}
	return expr, false
}

func nesting(t token) int {
	switch {
	case t.kind != symbol:
		return 0
	case strings.Contains("([{", t.text):
		return 1
	case strings.Contains(")]}", t.text):
		return -1
	}
	return 0
}
