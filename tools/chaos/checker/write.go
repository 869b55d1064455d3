package checker

import (
	"github.com/tenure-dev/tenure/tools/chaos/resource"
	"github.com/tenure-dev/tenure/tools/harness/report"
)

// writes checks the resource: it must have refused every token that was smaller than one that it
// had accepted, and the holder of a live lease must not have been refused.
func (h *History) writes(leases []*Lease, overlaps []Overlap) report.Violations {
	var found report.Violations
	byID := make(map[string]*Lease, len(leases))
	for _, l := range leases {
		byID[l.ID] = l
	}
	largest := make(map[string]resource.Write)
	for _, w := range h.Writes {
		l := byID[w.Lease]
		last := largest[w.Key]
		switch {
		case l == nil || l.Token != w.Token || l.Key != w.Key:
			found.Add(StaleWrite, "key %s: a write with token %d names the lease %s, which is not in the journals", w.Key, w.Token, w.Lease)
		case w.Accepted && w.Token < last.Token:
			found.Add(StaleWrite, "key %s: the resource accepted token %d of %s after token %d of %s", w.Key, w.Token, w.Lease, last.Token, last.Lease)
		case !w.Accepted && l.Granted <= w.At && w.At < l.End && !excused(l, w, overlaps):
			found.Add(RefusedHolder, "key %s: the resource refused token %d of %s, which was live, because of token %d of %s",
				w.Key, w.Token, l, last.Token, last.Lease)
		}
		if w.Accepted && w.Token > last.Token {
			largest[w.Key] = w
		}
	}
	return found
}

// excused reports whether a live holder was refused for the sake of another whose overlap is
// excused, or of a token whose order is.
func excused(l *Lease, w resource.Write, overlaps []Overlap) bool {
	if l.free {
		return true
	}
	for _, o := range overlaps {
		if o.Excuse != "" && (o.Older == l || o.Newer == l) && o.From <= w.At {
			return true
		}
	}
	return false
}
