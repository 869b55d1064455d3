package checker

import (
	"cmp"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/tools/harness/history"
)

// outages returns, for each key, the longest time in which somebody wanted it and nobody had a live
// lease.
func outages(leases []*Lease, wants []*want) map[string]time.Duration {
	type edge struct {
		at           history.Instant
		wanted, held int
	}
	edges := make(map[string][]edge)
	for _, w := range wants {
		if w.tick {
			continue // nobody waits for one
		}
		edges[w.key] = append(edges[w.key], edge{at: w.from, wanted: 1}, edge{at: w.to, wanted: -1})
	}
	for _, l := range leases {
		if l.live() && l.Tick == 0 {
			edges[l.Key] = append(edges[l.Key], edge{at: l.Granted, held: 1}, edge{at: l.End, held: -1})
		}
	}
	longest := make(map[string]time.Duration, len(edges))
	for key, es := range edges {
		slices.SortFunc(es, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
		wanted, held, since := 0, 0, history.Instant(-1)
		for i, e := range es {
			wanted, held = wanted+e.wanted, held+e.held
			if i+1 < len(es) && es[i+1].at == e.at {
				continue
			}
			out := wanted > 0 && held == 0
			switch {
			case out && since < 0:
				since = e.at
			case !out && since >= 0:
				longest[key] = max(longest[key], e.at.Sub(since))
				since = -1
			}
		}
	}
	return longest
}
