package web

import (
	"strings"
	"unicode"

	"github.com/tenure-dev/tenure/internal/view"
)

// Names and texts come from users and from servers. m escapes them for HTML; visible has people see
// what is in them.
var visible = view.Visible

// inSentence is a name as it stands in a sentence. One with letters that may run from right to left
// does not turn what is around it.
func inSentence(name string) string {
	name = view.Shortened(visible(name), 60)
	if name == "" || name[0] == ' ' || name[len(name)-1] == ' ' {
		name = "“" + name + "”"
	}
	// Nothing before Hebrew runs from the right, nor does punctuation.
	if strings.ContainsFunc(name, func(r rune) bool { return r >= 0x0590 && !unicode.IsPunct(r) }) {
		const isolate, pop = "\u2068", "\u2069"
		name = isolate + name + pop
	}
	return name
}
