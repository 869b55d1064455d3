package bulletin

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

func reads[T any](parse func(string) (T, bool)) func(string) (any, bool) {
	return func(text string) (any, bool) { return parse(text) }
}

// parsers have a text each that they read.
var parsers = map[string]struct {
	parse func(string) (any, bool)
	text  string
}{
	"job": {reads(ParseJob), `{"v":1,"job":"j","key":"k","by":"me"}`}, "run": {reads(ParseRun), `{"v":1,"job":"j","by":"me","token":3}`},
	"skip": {reads(ParseSkip), `{"v":1,"reason":"paused","by":"me"}`}, "term": {reads(ParseTerm), `{"v":1,"term":3,"by":"me","event":"lost"}`},
	"order": {reads(ParseOrder), `{"v":1,"id":"i","kind":"cancel","by":"me"}`}, "process": {reads(ParseProcess), `{"v":1,"identity":"me"}`},
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
		if j, ok := ParseJob(text); ok {
			requireTexts(t, j.texts()...)
			requireTimes(t, j.Next)
			require.True(t, utf8.ValidString(j.Job+j.Key))
			if card, ok := j.Card(); ok {
				again, ok := ParseJob(card.Text)
				require.True(t, ok)
				j.V = version
				require.Equal(t, j.Key+j.Job, again.Key+again.Job)
				requireBeginnings(t, j.texts(), again.texts())
			}
		}
		if r, ok := ParseRun(text); ok {
			requireRun(t, &r)
			requireTexts(t, &r.Job)
			e, ok := r.Entry("k")
			require.True(t, ok)
			again, ok := ParseRun(e.Text)
			require.True(t, ok)
			requireBeginnings(t, r.texts(), again.texts())
			require.Equal(t, r.Token, again.Token)
		}
		if s, ok := ParseSkip(text); ok {
			requireTexts(t, s.texts()...)
			requireTimes(t, s.Tick)
			e, ok := s.Entry("k", 1)
			require.True(t, ok)
			again, ok := ParseSkip(e.Text)
			require.True(t, ok)
			requireBeginnings(t, s.texts(), again.texts())
		}
		if term, ok := ParseTerm(text); ok {
			requireTexts(t, term.texts()...)
			requireTimes(t, term.At)
			e, ok := term.Entry(term.Election)
			require.True(t, ok)
			again, ok := ParseTerm(e.Text)
			require.True(t, ok)
			requireBeginnings(t, term.texts(), again.texts())
		}
		if o, ok := ParseOrder(text); ok {
			requireTexts(t, o.texts()...)
			require.Equal(t, within(o.Within), o.Within)
			require.LessOrEqual(t, len(o.ID), maxID)
			require.True(t, utf8.ValidString(o.ID+o.Target))
			if o.Run != nil {
				requireRun(t, o.Run)
			}
			e, ok := o.Entry()
			require.True(t, ok || o.Result == "" && len(o.Target) > maxText/2, "its target is too long")
			if ok {
				again, ok := ParseOrder(e.Text)
				require.True(t, ok)
				require.Equal(t, o.ID, again.ID)
				require.True(t, strings.HasPrefix(o.Target, again.Target))
				require.True(t, o.Result != "" || o.Target == again.Target)
			}
		}
		if p, ok := ParseProcess(text); ok {
			requireTexts(t, &p.Process, &p.Identity, &p.Host, &p.Program, &p.Version)
			requireTimes(t, p.Began)
			for i := range p.Nodes {
				requireTexts(t, &p.Nodes[i].Node, &p.Nodes[i].Why)
				requireTimes(t, p.Nodes[i].Since)
				require.LessOrEqual(t, len(p.Nodes[i].Was), mostTurns)
				for _, was := range p.Nodes[i].Was {
					requireTexts(t, &was.Why)
					requireTimes(t, was.Since)
				}
			}
			for i := range p.Running {
				requireRun(t, &p.Running[i])
			}
			for i := range p.Elections {
				requireTexts(t, &p.Elections[i].Identity)
				requireTimes(t, p.Elections[i].Since)
				require.True(t, utf8.ValidString(p.Elections[i].Election))
			}
			require.True(t, utf8.ValidString(strings.Join(p.Jobs, "")))
		}
	})
}

func requireTexts(t *testing.T, texts ...*string) {
	t.Helper()
	for _, text := range texts {
		require.LessOrEqual(t, len(*text), maxText)
		require.True(t, utf8.ValidString(*text))
	}
}

func requireTimes(t *testing.T, times ...int64) {
	t.Helper()
	for _, ms := range times {
		require.GreaterOrEqual(t, ms, int64(0))
		require.LessOrEqual(t, ms, int64(maxTime))
	}
}

func requireRun(t *testing.T, r *Run) {
	t.Helper()
	requireTexts(t, r.texts()[1:]...)
	require.True(t, utf8.ValidString(r.Job))
	requireTimes(t, r.Tick, r.Began, r.Took)
	require.GreaterOrEqual(t, r.Attempt, 0)
	require.NotEmpty(t, r.By)
}

// requireBeginnings requires that all texts are the beginnings of what they were.
func requireBeginnings(t *testing.T, was, is []*string) {
	t.Helper()
	for i := range was {
		require.True(t, strings.HasPrefix(*was[i], *is[i]), "%q is %q", *was[i], *is[i])
	}
}

// What is made is read back as it was, whatever the fields are, but for texts that are too long or
// no UTF-8, and numbers that are no times.
func FuzzMade(f *testing.F) {
	f.Add("report", "host-1", "timeout", "ann", "ID", int64(1780000000000), int64(5), uint64(7), 2, true)
	f.Add("<>&\u2028\u2029", "\x00\x7f\"\\", "日本", "\xff\xfe", "-", int64(-1), int64(maxTime+1), uint64(1<<64-1), -1, false)
	f.Add(strings.Repeat("\x01", 256), strings.Repeat("日", 100), strings.Repeat("<", 400), "x", strings.Repeat("\x01", 64), int64(maxTime), int64(0), uint64(0), 1<<62, false)
	f.Add("", "", "", "", "", int64(0), int64(0), uint64(0), 0, false)
	f.Fuzz(func(t *testing.T, name, by, word, other, id string, at, took int64, number uint64, attempt int, flag bool) {
		if len(name)+len(by)+len(word)+len(other)+len(id) > 4096 {
			t.Skip()
		}
		key := strings.ToValidUTF8(name, "?")
		key = cut(key, redlock.MaxKeyLength)
		run := Run{V: 1, Job: name, Tick: at, By: by, Began: at, Took: took, Outcome: word, Error: other, Attempt: attempt, Why: word, Token: number, Trace: other, Order: id}
		skip := Skip{V: 1, Job: name, Tick: at, Reason: word, By: by, Holder: other}
		term := Term{V: 1, Election: key, Term: number, By: by, Event: word, Reason: other, At: at}
		answer := Order{V: 1, ID: id, Kind: word, Target: name, Number: number, By: by, Why: other, Within: at, Result: Done, Detail: word, Run: &Run{By: by, Began: at, Token: number}}

		e, ok := run.Entry(key)
		require.True(t, ok)
		got, ok := ParseRun(e.Text)
		require.Equal(t, by != "", ok)
		want := run
		shorten(want.texts())
		want.clean()
		requireSame(t, e, ok, want, got)

		e, ok = skip.Entry(key, 3)
		require.True(t, ok)
		s, ok := ParseSkip(e.Text)
		require.Equal(t, word != "", ok)
		shorten(skip.texts())
		skip.Tick = clean(at)
		requireSame(t, e, ok, skip, s)

		e, ok = term.Entry(key)
		require.True(t, ok)
		tm, ok := ParseTerm(e.Text)
		require.Equal(t, word != "", ok)
		shorten(term.texts())
		term.At = clean(at)
		requireSame(t, e, ok, term, tm)

		e, ok = answer.Entry()
		require.Equal(t, id != "" && len(id) <= maxID && utf8.ValidString(id), ok, "an answer is always one")
		if ok {
			o, ok := ParseOrder(e.Text)
			require.Equal(t, word != "", ok)
			shorten(append(answer.texts(), &answer.Target))
			answer.Within, answer.Run.Began = within(at), clean(at)
			if by == "" {
				answer.Run = nil
			}
			requireSame(t, e, ok, answer, o)
		}

		order := answer
		order.Target, order.Result, order.Run = name, "", nil
		if e, ok = order.Entry(); ok && word != "" {
			o, ok := ParseOrder(e.Text)
			require.True(t, ok)
			require.Equal(t, name, o.Target, "it is for no other")
			requireSame(t, e, ok, order, o)
		}

		job := Job{V: 1, Job: name, Key: key, Schedule: word, Zone: other, Program: by, Delivery: word, CatchUp: other, Overlap: by, Next: at, Within: at, By: by, Orders: flag}
		if card, ok := job.Card(); ok {
			require.Equal(t, key, card.ID)
			require.LessOrEqual(t, len(card.Text), MaxCardText)
			j, ok := ParseJob(card.Text)
			require.True(t, ok)
			require.Equal(t, name, j.Job)
			shorten(job.texts())
			job.Next, job.Within = clean(at), clean(at)
			if room(name)+room(key)+4*room(by)+2*room(word)+2*room(other) < MaxCardText-300 {
				require.Equal(t, job, j)
			}
		}
	})
}

// requireSame requires that what was read is what was written, if that was not too long for it.
func requireSame[T any](t *testing.T, e Entry, read bool, want, got T) {
	t.Helper()
	require.LessOrEqual(t, len(e.Text), MaxEntryText)
	require.True(t, utf8.ValidString(e.Text))
	if whole := jsonOf(t, want); read && len(whole) <= MaxEntryText {
		require.Equal(t, want, got)
	}
}

func jsonOf(t *testing.T, value any) string {
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}
