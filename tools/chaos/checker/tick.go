package checker

import (
	"fmt"
	"time"

	"github.com/tenure-dev/tenure/tools/harness/history"
)

// Twin is two leases of one tick. All are at most once.
type Twin struct {
	Older, Newer *Lease
	Excuse       string
}

func (t Twin) String() string {
	return fmt.Sprintf("key %s: the tick %d was granted to %s and to %s", t.Older.Key, t.Older.Tick, t.Older, t.Newer)
}

// twins finds ticks that were granted twice.
func (h *History) twins(leases []*Lease) (found []Twin) {
	type tick struct {
		key    string
		number int64
	}
	owner := make(map[tick]*Lease)
	for _, l := range leases {
		if l.Tick == 0 {
			continue
		}
		t := tick{l.Key, l.Tick}
		if other := owner[t]; other != nil {
			older, newer := other, l
			if newer.begun() < older.begun() {
				older, newer = newer, older
			}
			found = append(found, Twin{Older: older, Newer: newer, Excuse: h.excuseTwin(older, newer)})
		}
		owner[t] = l
	}
	return found
}

// excuseTwin tells whether it is not promised that a tick was granted once: FLUSHALL struck a
// server while it was granted first, a quorum was emptied, or the tick was on a bare quorum of
// which one server was emptied while another one did not answer.
func (h *History) excuseTwin(older, newer *Lease) string {
	for _, s := range h.Strikes {
		if flushes(s) && s.To >= older.begun() && s.From <= older.Granted {
			return fmt.Sprintf("FLUSHALL on server %d while the tick was granted", s.Node+1)
		}
	}
	if why := h.emptied(older.begun(), newer.Granted); why != "" {
		return why
	}
	ill := make(map[int]bool)
	for _, s := range h.impaired() {
		if s.meets(older.begun(), older.Granted) {
			ill[s.node] = true
		}
	}
	if h.Settings.Servers-len(ill) > h.quorum() {
		return ""
	}
	why, _ := h.emptiedBeside(older.begun(), newer.Granted)
	if why == "" {
		return ""
	}
	return "the tick was granted by a bare quorum, and " + why
}

// resumed judges that ticks are granted again after the end of all pauses.
func (v *Verdict) resumed(h *History, wants []*want, marks []*Mark) {
	if h.Over == 0 {
		return
	}
	last := h.Over
	for _, m := range marks {
		last = max(last, m.To)
	}
	for _, key := range h.Settings.Ticks {
		var asked, granted history.Instant
		for _, w := range wants {
			if !w.tick || w.key != key || w.from < last {
				continue
			}
			if asked == 0 || w.from < asked {
				asked = w.from
			}
			if w.lease != nil && (granted == 0 || w.to < granted) {
				granted = w.to
			}
		}
		if granted == 0 {
			v.Add(Unavailable, "key %s: no tick was granted after everything was resumed", key)
			continue
		}
		v.Resuming = max(v.Resuming, granted.Sub(asked).Round(time.Microsecond))
	}
}
