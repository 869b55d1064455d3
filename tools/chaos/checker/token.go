package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/tools/harness/history"
)

// Disorder is two leases on a key whose tokens are not in the order of their grants.
type Disorder struct {
	Earlier, Later *Lease
	Excuse         string
}

func (d Disorder) String() string {
	return fmt.Sprintf("key %s: %s was granted before %s", d.Earlier.Key, d.Earlier, d.Later)
}

// disorders finds tokens that do not increase. One lease was granted before another if it had been
// returned when the round began that acquired the other; those that were granted at the same time
// must still differ.
func (h *History) disorders(leases []*Lease) []Disorder {
	var found []Disorder
	byKey := make(map[string][]*Lease)
	for _, l := range leases {
		byKey[l.Key] = append(byKey[l.Key], l)
	}
	for _, returned := range byKey { // in the order of their return
		begun := slices.SortedFunc(slices.Values(returned), func(a, b *Lease) int { return cmp.Compare(a.begun(), b.begun()) })
		owner := make(map[uint64]*Lease)
		var largest *Lease // among those that were returned before
		next := 0
		for _, later := range begun {
			for next < len(returned) && returned[next].Granted < later.begun() {
				if largest == nil || returned[next].Token > largest.Token {
					largest = returned[next]
				}
				next++
			}
			earlier := owner[later.Token]
			if largest != nil && largest.Token >= later.Token {
				earlier = largest
			}
			if earlier != nil {
				d := Disorder{Earlier: earlier, Later: later, Excuse: h.excuseDisorder(earlier, later)}
				later.free = d.Excuse != ""
				found = append(found, d)
			}
			owner[later.Token] = later
		}
	}
	return found
}

// excuseDisorder tells whether the guarantee does not cover the order of two tokens. It does not if
// a server's clock was ahead by more than the declared skew, so that tokens were ahead of all other
// clocks, and a running server lost its counters to FLUSHALL before those clocks had caught up,
// between the two grants.
func (h *History) excuseDisorder(earlier, later *Lease) string {
	ahead := h.ahead(earlier)
	if ahead == "" {
		return ""
	}
	for _, s := range h.Strikes {
		if flushes(s) && s.To >= earlier.begun() && s.From <= later.Granted {
			return fmt.Sprintf("%s, and FLUSHALL on server %d between the grants", ahead, s.Node+1)
		}
	}
	return ""
}

// ahead names a server whose clock was ahead by more than the skew when the lease was granted, or
// so short a time before that the other clocks had not caught up.
func (h *History) ahead(l *Lease) string {
	offsets := make(map[int]time.Duration)
	since := make(map[int]history.Instant)
	for _, s := range h.Strikes {
		if s.Jump == 0 {
			continue
		}
		was := offsets[s.Node]
		if was > h.Settings.Skew && since[s.Node] <= l.Granted && l.begun() <= s.To.Add(was) {
			return fmt.Sprintf("the clock of server %d was %s ahead", s.Node+1, was)
		}
		offsets[s.Node] = was + s.Jump
		since[s.Node] = s.From
	}
	for n, was := range offsets {
		if was > h.Settings.Skew && since[n] <= l.Granted {
			return fmt.Sprintf("the clock of server %d was %s ahead", n+1, was)
		}
	}
	return ""
}
