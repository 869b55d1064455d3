package bulletin

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// fit cleans a value, and encodes it in at most so many bytes; more are texts that may be shortened
// beside those of textsOf. While the value is too long, it halves the text that takes most room.
// Encoded length counts, because a control character takes six bytes.
func fit(value interface{ clean() }, most int, more ...*string) (string, bool) {
	value.clean()
	texts := append(textsOf(value), more...)
	shorten(texts)
	for {
		encoded := encode(value)
		if len(encoded) <= most {
			return encoded, true
		}
		longest := slices.MaxFunc(texts, func(x, y *string) int { return cmp.Compare(room(*x), room(*y)) })
		if *longest == "" {
			return "", false
		}
		*longest = cut(*longest, len(*longest)/2)
	}
}

// encode encodes a value as JSON. This cannot fail for texts, numbers and lists. It does not escape
// HTML, which would take six bytes for <: no browser reads it as HTML.
func encode(value any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(value)
	return strings.TrimSuffix(b.String(), "\n")
}

// room returns how many bytes a value takes.
func room(value any) int { return len(encode(value)) }

// cut makes a text valid UTF-8 of at most so many bytes.
func cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	for !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// textsOf returns the texts of a value that may be shortened: those without the tag whole, which
// has the names by which something is found. A list or a struct names there the field of its
// elements that stays whole.
func textsOf(value any) []*string { return textsIn(reflect.ValueOf(value), "") }

func textsIn(v reflect.Value, whole string) (all []*string) {
	switch v.Kind() {
	case reflect.String:
		all = append(all, v.Addr().Interface().(*string))
	case reflect.Pointer:
		if !v.IsNil() {
			all = textsIn(v.Elem(), whole)
		}
	case reflect.Slice:
		for i := range v.Len() {
			all = append(all, textsIn(v.Index(i), whole)...)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Name != whole && f.Tag.Get("whole") != f.Name {
				all = append(all, textsIn(v.Field(i), f.Tag.Get("whole"))...)
			}
		}
	}
	return all
}

func (o *Order) hasID() bool { return o.ID != "" && len(o.ID) <= maxID }
