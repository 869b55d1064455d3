package bulletin

import (
	"encoding/json"
	"unicode/utf8"
)

// shorten has texts that were read fit.
func shorten(texts []*string) {
	for _, text := range texts {
		*text = cut(*text, maxText)
	}
}

// ParseJob reads the card of a job; false for a text that is none.
func ParseJob(text string) (j Job, ok bool) {
	if !decode(text, &j) || j.V < 1 || j.Key == "" || j.Job == "" {
		return Job{}, false
	}
	shorten(j.texts())
	j.Next, j.Within = clean(j.Next), clean(j.Within)
	return j, true
}

// ParseRun reads a run.
func ParseRun(text string) (r Run, ok bool) {
	if !decode(text, &r) || !r.checked() {
		return Run{}, false
	}
	return r, true
}

// checked reports whether a run that was read is one, and has its fields fit.
func (r *Run) checked() bool {
	shorten(r.texts())
	r.clean()
	return r.By != ""
}

// clean has the numbers of a run be some.
func (r *Run) clean() {
	r.Tick, r.Began, r.Took, r.Attempt = clean(r.Tick), clean(r.Began), min(max(r.Took, 0), maxTime), max(r.Attempt, 0)
}

// ParseSkip reads a skip.
func ParseSkip(text string) (s Skip, ok bool) {
	if !decode(text, &s) || s.V < 1 || s.Reason == "" {
		return Skip{}, false
	}
	shorten(s.texts())
	s.Tick = clean(s.Tick)
	return s, true
}

// ParseTerm reads a beginning or an end of a term.
func ParseTerm(text string) (t Term, ok bool) {
	if !decode(text, &t) || t.V < 1 || t.Event == "" {
		return Term{}, false
	}
	shorten(t.texts())
	t.At, t.Vacant = clean(t.At), clean(t.Vacant)
	return t, true
}

// ParseOrder reads an order or what came of it.
func ParseOrder(text string) (o Order, ok bool) {
	if !decode(text, &o) || o.V < 1 || !o.hasID() || o.Kind == "" {
		return Order{}, false
	}
	if o.Run != nil && !o.Run.checked() {
		o.Run = nil
	}
	shorten(o.texts())
	o.Within = within(o.Within)
	return o, true
}

// ParseProcess reads the card of a process.
func ParseProcess(text string) (p Process, ok bool) {
	if !decode(text, &p) || p.V < 1 {
		return Process{}, false
	}
	shorten([]*string{&p.Process, &p.Identity, &p.Host, &p.Program, &p.Version})
	p.Began = clean(p.Began)
	for i := range p.Nodes {
		shorten([]*string{&p.Nodes[i].Node, &p.Nodes[i].Why})
	}
	var running []Run
	for _, r := range p.Running {
		if r.checked() {
			running = append(running, r)
		}
	}
	p.Running = running
	for i := range p.Elections {
		c := &p.Elections[i]
		shorten([]*string{&c.Identity})
		c.Since = clean(c.Since)
	}
	return p, true
}

// decode reads JSON that is not longer than any that this package makes.
func decode(text string, to any) bool {
	return len(text) <= MaxCardText && utf8.ValidString(text) && json.Unmarshal([]byte(text), to) == nil
}

// maxTime is a time in milliseconds far in the future, that time.Time can hold: the year 2223. As
// microseconds it is three months.
const maxTime = 8_000_000_000_000

// clean is a time that time.Time can hold, and zero for one that is none.
func clean(ms int64) int64 {
	if ms < 0 || ms > maxTime {
		return 0
	}
	return ms
}
