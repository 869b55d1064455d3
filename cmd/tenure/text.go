package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// line makes a text of others safe for a terminal, on one line: control characters, those that
// change the direction of text, those without a width, and bytes that are no UTF-8 are escaped as
// Go writes them.
func line(text string) string {
	if !strings.ContainsFunc(text, unsafe) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 || unsafe(r) {
			quoted := strconv.QuoteToASCII(text[i : i+size])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// unsafe reports whether a terminal may do something else than show the character: controls (Cc),
// formats such as U+202E (Cf), separators of lines (Zl, Zp), and what nobody has assigned.
func unsafe(r rune) bool {
	return r != ' ' && (!unicode.IsPrint(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp))
}

// quoted is a text of others within a sentence.
func quoted(text string) string { return `"` + strings.ReplaceAll(line(text), `"`, `\"`) + `"` }
