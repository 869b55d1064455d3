package view

import (
	"fmt"
	"strings"
	"unicode"
)

// Visible is a text with what would not be seen made visible: control characters, those that change
// the order, and those that have no width or are blank. U+202E is shown as ⟨U+202E⟩, and a line
// feed as ␊. Of a text of which nothing is seen each character is shown like that, also spaces.
func Visible(text string) string {
	blank := !strings.ContainsFunc(text, isSeen)
	if text == "" || !blank && !strings.ContainsFunc(text, Hidden) {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !blank && !Hidden(r):
			b.WriteRune(r)
		case r < 0x20:
			b.WriteRune(0x2400 + r)
		default:
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		}
	}
	return b.String()
}

// Hidden reports whether a character is not seen where it stands, or does something else there: a
// terminal may obey it.
func Hidden(r rune) bool {
	const (
		brailleBlank = 0x2800
		nullNotehead = 0x1D159
		khitanFiller = 0x16FE4
	)
	switch r {
	case ' ':
		return false
	case brailleBlank, nullNotehead, khitanFiller:
		return true
	}
	return !joins(r) && (!unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)) // such as the fillers of Hangul
}

// joins reports whether a character changes how those beside it look: the joiners of scripts and of
// pictures, and those that choose one of several forms. They are letters for those who use them,
// and nothing by themselves.
func joins(r rune) bool {
	const nonJoiner, joiner = 0x200C, 0x200D
	return r == nonJoiner || r == joiner || unicode.Is(unicode.Variation_Selector, r)
}

// isSeen reports whether a character is seen also by itself.
func isSeen(r rune) bool { return r != ' ' && !joins(r) && !Hidden(r) }
