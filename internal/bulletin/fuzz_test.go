package bulletin

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func reads[T any](parse func(string) (T, bool)) func(string) (any, bool) {
	return func(text string) (any, bool) { return parse(text) }
}

// parsers have a text each that they read.
var parsers = map[string]struct {
	parse func(string) (any, bool)
	text  string
}{
	"job": {reads(Parse[Job]), `{"v":1,"job":"j","key":"k","by":"me"}`}, "run": {reads(Parse[Run]), `{"v":1,"job":"j","by":"me","token":3}`},
	"skip": {reads(Parse[Skip]), `{"v":1,"reason":"paused","by":"me"}`}, "term": {reads(Parse[Term]), `{"v":1,"term":3,"by":"me","event":"lost"}`},
	"order": {reads(Parse[Order]), `{"v":1,"id":"i","kind":"cancel","by":"me"}`}, "process": {reads(Parse[Process]), `{"v":1,"identity":"me"}`},
}

// Whatever a text is, it is read into bounds or refused, and what was read is read again from what
// is made of it.
func FuzzParse(f *testing.F) {
	for _, p := range parsers {
		f.Add(p.text)
		f.Add(strings.Replace(p.text, `"me"`, `"`+strings.Repeat("日", 100)+`"`, 1))
		f.Add(strings.Replace(p.text, `"me"`, `"`+strings.Repeat(`\u0001`, 256)+`"`, 1))
		f.Add(strings.Replace(p.text, `"me"`, `"\ud800\udc00\ud800\u0000"`, 1))
	}
	for _, seed := range []string{
		"", "null", "{}", "[]", "\xff", `{"v":1e3}`, `{"V":1,"BY":"me","ID":"i","kind":"k","run":{"by":"me","attempt":-1}}`, `{"v":1,"run":null,"id":"i","kind":"k"}`,
		`{"v":9223372036854775807,"by":"me","tick":-9223372036854775808,"took":9223372036854775807}`, strings.Repeat("[", MaxCardText),
		`{"v":1,"by":"me","job":"j","key":"k","reason":"r","event":"e","id":"i","kind":"k","tick":-1,"began":-1,"took":-1,"attempt":-1,"next":-1,"at":-1,"within":-1,"run":{"token":5},"elections":[{"since":-1}]}`,
		`{"v":1,"id":"i","kind":"k","run":{"by":"` + strings.Repeat("日", 100) + `","job":"` + strings.Repeat(`\u0001`, 300) + `"}}`,
		`{"v":1,"nodes":[{},null],"running":[null,{"by":"me"}],"elections":[null,{"since":-1}],"jobs":[null,""]}`, `{"v":1,"jobs":{}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		requireRead(t, text, func(j *Job) (string, bool) { card, ok := j.Card(); return card.Text, ok })
		requireRead(t, text, func(s *Skip) (string, bool) { e, ok := s.Entry("k", 1); return e.Text, ok })
		requireRead(t, text, func(m *Term) (string, bool) { e, ok := m.Entry(m.Election); return e.Text, ok })
		requireRead(t, text, func(p *Process) (string, bool) { return "", false })
		requireRead(t, text, func(r *Run) (string, bool) {
			require.LessOrEqual(t, len(r.Job), maxText)
			e, ok := r.Entry("k")
			return e.Text, ok
		})
		requireRead(t, text, func(o *Order) (string, bool) {
			require.Equal(t, within(o.Within), o.Within)
			e, ok := o.Entry()
			require.True(t, ok || o.Result == "" && len(o.Target) > maxText/2, "its target is too long")
			if again, _ := Parse[Order](e.Text); ok {
				require.Equal(t, o.ID, again.ID)
				require.True(t, strings.HasPrefix(o.Target, again.Target))
				require.True(t, o.Result != "" || o.Target == again.Target)
			}
			return "", false // texts of its run are not all kept
		})
	})
}

// requireRead requires of what is read from a text, if that is a T, that it is within bounds, and
// that the beginnings of its texts are read from what is made of it.
func requireRead[T any, N notice[T]](t *testing.T, text string, makes func(N) (string, bool)) {
	t.Helper()
	value, ok := Parse[T, N](text)
	if !ok {
		return
	}
	requireBounds(t, "", reflect.ValueOf(value))
	if made, ok := makes(&value); ok {
		again, ok := Parse[T, N](made)
		require.True(t, ok)
		requireBeginnings(t, textsOf(&value), textsOf(&again))
	}
}

// requireBounds requires of each text that it is UTF-8, and not too long unless something is found
// by it, and of each number that it can be a time.
func requireBounds(t *testing.T, field string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			requireBounds(t, v.Type().Name()+"."+v.Type().Field(i).Name, v.Field(i))
		}
		if run, is := v.Interface().(Run); is {
			require.NotEmpty(t, run.By)
		}
	case reflect.Slice:
		for i := range v.Len() {
			requireBounds(t, field, v.Index(i))
		}
		require.True(t, field != "NodeSeen.Was" || v.Len() <= mostTurns)
	case reflect.Pointer:
		if !v.IsNil() {
			requireBounds(t, field, v.Elem())
		}
	case reflect.String:
		require.True(t, utf8.ValidString(v.String()), field)
		found := slices.Contains([]string{"Job.Job", "Job.Key", "Run.Job", "Order.Target", "Candidacy.Election", "Process.Jobs"}, field)
		require.True(t, found || v.Len() <= maxText && (field != "Order.ID" || v.Len() <= maxID), field)
	case reflect.Int64:
		require.True(t, v.Int() >= 0 && v.Int() <= maxTime, field)
	case reflect.Int:
		require.True(t, field == "Process.PID" || v.Int() >= 0, field)
	}
}

// requireBeginnings requires that all texts are the beginnings of what they were.
func requireBeginnings(t *testing.T, was, is []*string) {
	t.Helper()
	for i := range was {
		require.True(t, strings.HasPrefix(*was[i], *is[i]), "%q is %q", *was[i], *is[i])
	}
}

func jsonOf(t *testing.T, value any) string {
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}
