package checker

import (
	"cmp"
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
				// Where both rounds went on at the same time either token may be the larger;
				// disorders judges the others.
				l.free = l.free || l.token < older.token
			}
			x.judge(Overlap, l.granted, excuse, "key %s: %s and %s were both live for %s, from %s", l.key, older, l, min(older.end, l.end).Sub(l.granted), l.granted)
		}
		held[l.key] = append(still, l)
	}
}

// excuseOverlap tells whether the guarantee does not cover that both leases were live. It does not
// if a running server lost its data (FLUSHALL), or let keys expire early because its clock jumped
// forward, after the older lease's keys were last set (the start of the last round known to have
// set them that had begun when the newer lease was granted) and before the newer lease was granted.
// A server that was restarted without its data is no excuse: the restart gate is there for it.
func (x *holds) excuseOverlap(older, newer *lease) string {
	from, to := older.renewed(newer.granted), newer.granted
	if n := x.flushed(from, to); n != 0 {
		return fmt.Sprintf("FLUSHALL on server %d after the older lease's keys were last set", n)
	}
	for _, s := range x.steps {
		if s.by > 0 && s.to >= from && s.from <= to {
			return fmt.Sprintf("the clock of server %d jumped forward by %s after the older lease's keys were last set", s.server+1, s.by)
		}
	}
	return ""
}

// flushed returns a running server that lost its data in a time, counted from one; zero if none
// did.
func (x *holds) flushed(from, to history.Instant) int {
	i := slices.IndexFunc(x.History.Strikes, func(s history.Strike) bool { return s.Kind == plan.FlushAll && s.Done >= from && s.From <= to })
	if i < 0 {
		return 0
	}
	return x.History.Strikes[i].Server + 1
}

// disorders finds tokens that do not increase. One lease was granted before another if it had been
// returned when the round began that acquired the other; those that were granted at the same time
// must still differ.
func (x *holds) disorders() {
	byKey := make(map[string][]*lease)
	for _, l := range x.all {
		byKey[l.key] = append(byKey[l.key], l)
	}
	for key, returned := range byKey { // in the order of their return
		begun := slices.SortedFunc(slices.Values(returned), func(a, b *lease) int { return cmp.Compare(a.begun(), b.begun()) })
		owner := make(map[uint64]*lease)
		var largest *lease // among those that were returned before
		next := 0
		for _, later := range begun {
			for next < len(returned) && returned[next].granted < later.begun() {
				if largest == nil || returned[next].token > largest.token {
					largest = returned[next]
				}
				next++
			}
			earlier := owner[later.token]
			if largest != nil && largest.token >= later.token {
				earlier = largest
			}
			if earlier != nil {
				excuse := x.excuseDisorder(earlier, later)
				later.free = excuse != ""
				x.judge(Disorder, later.granted, excuse, "key %s: %s was granted before %s", key, earlier, later)
			}
			owner[later.token] = later
		}
	}
}

// excuseDisorder tells whether the guarantee does not cover the order of two tokens. It does not if
// a server's clock was ahead by more than the declared skew, so that tokens were ahead of all other
// clocks, and a running server lost its counters to FLUSHALL before those clocks had caught up,
// between the two grants.
func (x *holds) excuseDisorder(earlier, later *lease) string {
	ahead := x.ahead(earlier)
	n := x.flushed(earlier.begun(), later.granted)
	if ahead == "" || n == 0 {
		return ""
	}
	return fmt.Sprintf("%s, and FLUSHALL on server %d between the grants", ahead, n)
}

// ahead names a server whose clock was ahead by more than the skew when the lease was granted, or
// so short a time before that the other clocks had not caught up.
func (x *holds) ahead(l *lease) string {
	offsets := make(map[int]time.Duration)
	since := make(map[int]history.Instant)
	for _, s := range x.steps {
		was := offsets[s.server]
		if was > plan.Skew && since[s.server] <= l.granted && l.begun() <= s.to.Add(was) {
			return fmt.Sprintf("the clock of server %d was %s ahead", s.server+1, was)
		}
		offsets[s.server] = was + s.by
		since[s.server] = s.from
	}
	for n, was := range offsets {
		if was > plan.Skew && since[n] <= l.granted {
			return fmt.Sprintf("the clock of server %d was %s ahead", n+1, was)
		}
	}
	return ""
}

// strangers finds what a process was granted that has another list of nodes than all others. Who
// belongs is written again with each look, so a server that ran and lost its data is an excuse.
func (x *holds) strangers() {
	const looks = 5 * time.Second
	for _, l := range x.all {
		if l.way != history.OtherList {
			continue
		}
		excuse := ""
		if n := x.flushed(l.granted.Add(-looks), l.granted); n != 0 {
			excuse = fmt.Sprintf("FLUSHALL on server %d", n)
		}
		x.judge(Admitted, l.granted, excuse, "key %s: %s was granted to a process with another list of nodes", l.key, l)
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
