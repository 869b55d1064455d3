package main

import (
	"slices"
	"strings"

	"github.com/tenure-dev/tenure/internal/view"
)

// line makes a text of others safe for a terminal, on one line.
var line = view.Visible

// quoted is a text of others within a sentence.
func quoted(text string) string { return `"` + strings.ReplaceAll(line(text), `"`, `\"`) + `"` }

// join joins those texts that are not empty.
func join(between string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), between)
}
