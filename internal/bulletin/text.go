package bulletin

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// fit encodes a value in at most so many bytes; texts point to those of its texts that may be
// shortened. While the value is too long, it halves the text that takes most room. Encoded length
// counts, because a control character takes six bytes.
func fit(value any, texts []*string, most int) (string, bool) {
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

func (j *Job) texts() []*string {
	return []*string{&j.Schedule, &j.Zone, &j.Program, &j.Election, &j.Delivery, &j.CatchUp, &j.Overlap, &j.By, &j.Runbook}
}

func (r *Run) texts() []*string {
	texts := []*string{&r.Job, &r.By, &r.Outcome, &r.Error, &r.Trace, &r.Order, &r.Report, &r.Why}
	for i := range r.Attempts {
		texts = append(texts, &r.Attempts[i].Error)
	}
	return texts
}

func (s *Skip) texts() []*string { return []*string{&s.Job, &s.Reason, &s.By, &s.Holder} }

func (t *Term) texts() []*string { return []*string{&t.Election, &t.By, &t.Event, &t.Reason} }

func (o *Order) texts() []*string {
	texts := []*string{&o.Kind, &o.By, &o.Why, &o.Result, &o.Detail}
	if o.Run != nil {
		texts = append(texts, o.Run.texts()...)
	}
	return texts
}

func (p *Process) texts() []*string {
	texts := []*string{&p.Process, &p.Identity, &p.Host, &p.Program, &p.Version}
	for i := range p.Nodes {
		texts = append(texts, &p.Nodes[i].Node, &p.Nodes[i].Why)
		for t := range p.Nodes[i].Was {
			texts = append(texts, &p.Nodes[i].Was[t].Why)
		}
	}
	for i := range p.Running {
		texts = append(texts, p.Running[i].texts()[1:]...) // all but the job
	}
	for i := range p.Elections {
		texts = append(texts, &p.Elections[i].Identity)
	}
	return texts
}

func (o *Order) hasID() bool { return o.ID != "" && len(o.ID) <= maxID }
