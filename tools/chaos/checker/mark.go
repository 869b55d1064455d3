package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/harness/history"
)

// Mark is a pause, or the end of one, that a client asked for.
type Mark struct {
	ID       string
	Key      string // empty for all keys
	Resume   bool
	From, To history.Instant // it was called, and it returned, or its client was gone
	Outcome  string          // type of its error; empty for none
	Floor    int64           // ticks that were due before it are not granted; as it was asked for where it did not say
	Version  uint64          // 0 if it did not say
	Nodes    int             // that have it, as it said
}

func (m *Mark) String() string {
	what, of := "pause", "of key "+m.Key
	if m.Resume {
		what = "resume"
	}
	if m.Key == "" {
		of = "of all keys"
	}
	return fmt.Sprintf("%s %s %s (version %d on %d servers, %s to %s)", what, m.ID, of, m.Version, m.Nodes, m.From, m.To)
}

// gone is the outcome of a call that never returned.
const gone = "gone"

// written reports whether a mark may have been written: an error other than Unknown says that it
// was not, unless the mark is there.
func (m *Mark) written() bool {
	return m.Outcome == "" || m.Outcome == record.Unknown || m.Outcome == gone || m.Version != 0
}

// follows reports whether a mark may count in the place of another one of the same key.
func (m *Mark) follows(o *Mark) bool {
	if m.Version != 0 {
		return m.Version > o.Version
	}
	return m.To >= o.From // whoever had returned before had a smaller version
}

// marks returns what operators did, in the order in which it returned.
func (h *History) marks() (marks []*Mark) {
	killed := make(map[string]history.Instant)
	for _, life := range h.Lives {
		killed[life.Name] = life.Killed
	}
	for life, records := range h.Records {
		open := make(map[string]*Mark)
		for _, r := range records {
			m := open[r.Lease]
			switch {
			case r.Kind == record.Pause, r.Kind == record.Resume:
				open[r.Lease] = &Mark{ID: r.Lease, Key: r.Key, Resume: r.Kind == record.Resume, From: r.At, Floor: r.Floor, Outcome: gone}
				marks = append(marks, open[r.Lease])
			case r.Kind == record.Marked && m != nil:
				m.To, m.Outcome, m.Version, m.Nodes = r.At, r.Text, r.Token, r.Nodes
				if r.Token != 0 {
					m.Floor = r.Floor
				}
			}
		}
		for _, m := range open {
			if m.Outcome == gone {
				m.To = max(killed[life], records[len(records)-1].At)
			}
		}
	}
	slices.SortFunc(marks, func(a, b *Mark) int { return cmp.Or(cmp.Compare(a.To, b.To), cmp.Compare(a.ID, b.ID)) })
	return marks
}

// Breach is a tick that was granted although it was due before the floor of a pause.
type Breach struct {
	Pause  *Mark
	Lease  *Lease
	Excuse string
}

func (b Breach) String() string {
	due := time.UnixMilli(b.Lease.Tick).UTC().Format("15:04:05.000")
	return fmt.Sprintf("key %s: the tick of %s was granted to %s after %s", b.Lease.Key, due, b.Lease, b.Pause)
}

// breaches finds ticks that were granted after a pause had returned and before anything that could
// have lifted it began. Each tick is found once, with the first pause without an excuse if there is
// one.
func (h *History) breaches(leases []*Lease, marks []*Mark) (found []Breach) {
	later := make(map[*Mark][]*Mark) // what may have lifted a pause, in the order in which it began
	for _, p := range marks {
		if p.Resume || p.Outcome != "" {
			continue
		}
		later[p] = nil
		for _, m := range marks {
			if m != p && m.Key == p.Key && m.written() && m.follows(p) {
				later[p] = append(later[p], m)
			}
		}
		slices.SortFunc(later[p], func(a, b *Mark) int { return cmp.Compare(a.From, b.From) })
	}
	for _, l := range leases {
		if l.Tick == 0 {
			continue
		}
		var breach *Breach
		for _, p := range marks {
			if p.To >= l.Granted {
				break
			}
			lifters, promises := later[p]
			if !promises || p.Key != "" && p.Key != l.Key || l.Tick >= p.Floor {
				continue
			}
			if slices.ContainsFunc(lifters, func(m *Mark) bool { return m.From < l.Granted && m.Floor <= l.Tick }) {
				continue
			}
			b := Breach{Pause: p, Lease: l, Excuse: h.excuseBreach(p, l)}
			if breach == nil || b.Excuse == "" {
				breach = &b
			}
			if b.Excuse == "" {
				break
			}
		}
		if breach != nil {
			found = append(found, *breach)
		}
	}
	return found
}

// excuseBreach tells whether a pause does not promise that a tick was not granted: FLUSHALL struck
// a server during the call, a quorum was emptied, or the pause stood on a bare quorum of which one
// server was emptied while another one did not answer.
func (h *History) excuseBreach(p *Mark, l *Lease) string {
	for _, s := range h.Strikes {
		if flushes(s) && s.To >= p.From && s.From <= p.To {
			return fmt.Sprintf("FLUSHALL on server %d during the pause", s.Node+1)
		}
	}
	if why := h.emptied(p.From, l.Granted); why != "" {
		return why
	}
	if p.Nodes > h.quorum() {
		return ""
	}
	why, since := h.emptiedBeside(p.From, l.Granted)
	if why == "" || h.spread(p.To, since) {
		return ""
	}
	return "the pause stood on a bare quorum, and " + why
}
