package bulletin

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// notice is a pointer to one of the types that are published.
type notice[T any] interface {
	*T
	is() bool // false for JSON of something else
	clean()   // sets invalid numbers to valid ones, and drops empty parts
}

// Parse parses a notice; false for invalid text, and for text longer than this package makes.
func Parse[T any, N notice[T]](text string) (T, bool) {
	var value, none T
	n := N(&value)
	if len(text) > MaxCardText || !utf8.ValidString(text) || json.Unmarshal([]byte(text), n) != nil || !n.is() {
		return none, false
	}
	shorten(textsOf(n))
	n.clean()
	return value, true
}

// shorten cuts texts to maxText.
func shorten(texts []*string) {
	for _, text := range texts {
		*text = cut(*text, maxText)
	}
}

func (j *Job) is() bool     { return j.V >= 1 && j.Key != "" && j.Job != "" }
func (r *Run) is() bool     { return r.By != "" }
func (s *Skip) is() bool    { return s.V >= 1 && s.Reason != "" }
func (t *Term) is() bool    { return t.V >= 1 && t.Event != "" }
func (o *Order) is() bool   { return o.V >= 1 && o.hasID() && o.Kind != "" }
func (p *Process) is() bool { return p.V >= 1 }

func (j *Job) clean()  { j.Next, j.Within, j.Window = clean(j.Next), clean(j.Within), clean(j.Window) }
func (s *Skip) clean() { s.Tick = clean(s.Tick) }
func (t *Term) clean() { t.At, t.Vacant = clean(t.At), clean(t.Vacant) }

func (r *Run) clean() {
	r.Tick, r.Began, r.Took, r.Attempt = clean(r.Tick), clean(r.Began), min(max(r.Took, 0), maxTime), max(r.Attempt, 0)
	if r.Attempts = r.Attempts[max(len(r.Attempts)-mostAttempts, 0):]; len(r.Attempts) < 2 {
		r.Attempts = nil
	}
	for i := range r.Attempts {
		a := &r.Attempts[i]
		a.Began, a.Took = clean(a.Began), min(max(a.Took, 0), maxTime)
	}
}

func (o *Order) clean() {
	o.Within = within(o.Within)
	if o.Run == nil {
		return
	}
	if o.Run.clean(); !o.Run.is() {
		o.Run = nil
	}
}

func (p *Process) clean() {
	p.Began = clean(p.Began)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		n.Since, n.Was = clean(n.Since), n.Was[:min(len(n.Was), mostTurns)]
		for t := range n.Was {
			n.Was[t].Since = clean(n.Was[t].Since)
		}
	}
	p.Running = slices.DeleteFunc(p.Running, func(r Run) bool { return !r.is() })
	for i := range p.Running {
		p.Running[i].clean()
	}
	p.Elections = slices.DeleteFunc(p.Elections, func(c Candidacy) bool { return c.Election == "" })
	for i := range p.Elections {
		p.Elections[i].Since = clean(p.Elections[i].Since)
	}
}

// maxTime is the latest time that is accepted, in milliseconds: the year 2223, which time.Time can
// hold. As a duration in microseconds it is three months.
const maxTime = 8_000_000_000_000

// clean returns a time in milliseconds, or zero if it is out of range.
func clean(ms int64) int64 {
	if ms < 0 || ms > maxTime {
		return 0
	}
	return ms
}
