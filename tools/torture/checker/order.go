package checker

import (
	"fmt"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// overlaps finds every pair of leases on a key that were live at once.
func (x *holds) overlaps() {
	held := make(map[string][]*lease)
	for _, l := range x.all {
		if l.granted >= l.end {
			continue
		}
		var still []*lease
		for _, older := range held[l.key] {
			if older.end <= l.granted {
				continue
			}
			still = append(still, older)
			excuse := x.excuseOverlap(older, l)
			if excuse != "" {
				if older.cut == 0 || l.begun() < older.cut {
					older.cut = l.begun()
				}
				// Where both rounds went on at the same time either token may be the larger.
				l.free = l.free || l.token < older.token && l.begun() <= older.granted
			}
			text := fmt.Sprintf("key %s: %s and %s were both live for %s, from %s", l.key, older, l, min(older.end, l.end).Sub(l.granted), l.granted)
			if excuse == "" {
				x.add(Overlap, l.granted, "%s", text)
			} else {
				x.excuse("%s: %s", text, excuse)
			}
		}
		held[l.key] = append(still, l)
	}
}

// excuseOverlap tells whether the guarantee does not cover that both leases were live. It does not
// if a server let keys expire early because its clock jumped forward, after the older lease's keys
// were last set (the start of the last round known to have set them that had begun when the newer
// lease was granted) and before the newer lease was granted. A server that was restarted without
// its data is no excuse: the restart gate is there for it.
func (x *holds) excuseOverlap(older, newer *lease) string {
	for _, s := range x.steps {
		if s.by > 0 && s.to >= older.renewed(newer.granted) && s.from <= newer.granted {
			return fmt.Sprintf("the clock of server %d jumped forward by %s after the older lease's keys were last set", s.server+1, s.by)
		}
	}
	return ""
}

// strangers finds what a process was granted that has another list of nodes than all others.
func (x *holds) strangers() {
	for _, l := range x.all {
		if l.way == history.OtherList {
			x.add(Admitted, l.granted, "key %s: %s was granted to a process with another list of nodes", l.key, l)
		}
	}
}

// expiries finds times in which certificates had expired, and nobody was granted anything who had
// its connections. No client is struck then.
func (x *holds) expiries() {
	const within = 3 * time.Second
	began := make(map[string]history.Instant)
	for _, life := range x.History.Lives {
		began[life.Name] = life.Began
	}
	for _, s := range x.History.Strikes {
		if s.Kind != plan.Expire || s.Server != 0 || s.Heal.Sub(s.Done) < within+time.Second {
			continue
		}
		if !slices.ContainsFunc(x.all, func(l *lease) bool {
			return l.granted > s.Heal.Add(-within) && l.granted < s.Heal && began[l.life] < s.From
		}) {
			x.add(Unavailable, s.Heal, "nobody was granted a key in the last %s before %s, with certificates that had expired at %s", within, s.Heal, s.From)
		}
	}
}
