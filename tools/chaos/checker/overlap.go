package checker

import (
	"fmt"

	"github.com/tenure-dev/tenure/tools/harness/history"
)

// Overlap is two leases on a key that were live at once.
type Overlap struct {
	Older, Newer *Lease
	From, To     history.Instant
	Excuse       string // why the guarantee does not cover it; empty for a violation
}

func (o Overlap) String() string {
	return fmt.Sprintf("key %s: %s and %s were both live for %s, from %s", o.Older.Key, o.Older, o.Newer, o.To.Sub(o.From), o.From)
}

// overlaps finds every pair of leases on a key that were live at once. The leases are in the order
// of their grants.
func (h *History) overlaps(leases []*Lease) []Overlap {
	var found []Overlap
	held := make(map[string][]*Lease)
	for _, l := range leases {
		if !l.live() {
			continue
		}
		var still []*Lease
		for _, older := range held[l.Key] {
			if older.End <= l.Granted {
				continue
			}
			still = append(still, older)
			o := Overlap{Older: older, Newer: l, From: l.Granted, To: min(older.End, l.End)}
			o.Excuse = h.excuseOverlap(older, l)
			if o.Excuse != "" {
				if older.cut == 0 || l.begun() < older.cut {
					older.cut = l.begun()
				}
				// Where both rounds went on at the same time either token may be the larger;
				// disorders judges the others.
				l.free = l.free || l.Token < older.Token
			}
			found = append(found, o)
		}
		held[l.Key] = append(still, l)
	}
	return found
}

// excuseOverlap tells whether the guarantee does not cover that both leases were live. It does not
// if a running server lost its data (FLUSHALL), or let keys expire early because its clock jumped
// forward, after the older lease's keys were last set (the start of the last round known to have
// set them that had begun when the newer lease was granted) and before the newer lease was granted.
// A server that was restarted without its data is no excuse: the restart gate is there for it.
func (h *History) excuseOverlap(older, newer *Lease) string {
	from, to := older.renewed(newer.Granted), newer.Granted
	for _, s := range h.Strikes {
		if s.To < from || s.From > to {
			continue
		}
		switch {
		case flushes(s):
			return fmt.Sprintf("FLUSHALL on server %d after the older lease's keys were last set", s.Node+1)
		case s.Jump > 0:
			return fmt.Sprintf("the clock of server %d jumped forward by %s after the older lease's keys were last set", s.Node+1, s.Jump)
		}
	}
	return ""
}
