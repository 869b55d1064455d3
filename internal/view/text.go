package view

import (
	"fmt"
	"strings"
	"unicode"
)

// Visible makes invisible characters of a text visible: control characters, characters that change
// the direction, and characters that are blank or have no width. U+202E becomes ⟨U+202E⟩, and a
// line feed ␊. If no character of the text is visible, each one is replaced, also spaces.
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

// Hidden reports whether a character is invisible, or has an effect instead: a terminal may obey
// it.
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

// joins reports whether a character changes the look of its neighbours: the joiners of scripts and
// emoji, and variation selectors. Those are letters for their users, and invisible alone.
func joins(r rune) bool {
	const nonJoiner, joiner = 0x200C, 0x200D
	return r == nonJoiner || r == joiner || unicode.Is(unicode.Variation_Selector, r)
}

// isSeen reports whether a character is visible alone.
func isSeen(r rune) bool { return r != ' ' && !joins(r) && !Hidden(r) }
