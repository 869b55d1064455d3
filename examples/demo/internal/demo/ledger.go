package demo

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// grace is how much later than the deadline of a lease its end may be reported.
	grace = time.Second
	// keepItems is how long leases are kept after their end.
	keepItems = 3 * time.Minute
	// keepTicks is how long ticks that have run are remembered. It is longer than the catch-up.
	keepTicks = 2 * time.Hour
)

// span is the time in which a replica could rely on a lease, from its grant to its end. Times are
// Unix milliseconds.
type span struct {
	item    *Item
	held    int64 // the lease was certainly held until then
	settled bool  // the end is known: held does not change any more
}

// ledger records leases and runs, and finds violations: ticks that ran twice, and leases that
// overlap. It belongs to a Demo, whose mutex guards it.
type ledger struct {
	spans    []*span
	ticks    map[int64]int    // number of attempts of a tick that have run
	attempts map[[2]int64]int // how often an attempt of a tick has run
	counted  map[[2]int]bool  // pairs of items that are known to overlap
	counters Counters
}

func newLedger() *ledger {
	return &ledger{ticks: make(map[int64]int), attempts: make(map[[2]int64]int), counted: make(map[[2]int]bool)}
}

// begin records a run. It returns false if the same attempt of the tick has run before.
func (l *ledger) begin(tick int64, attempt int) bool {
	if l.ticks[tick]++; l.ticks[tick] == 1 {
		l.counters.Ticks++
	}
	attemptOf := [2]int64{tick, int64(attempt)}
	if l.attempts[attemptOf]++; l.attempts[attemptOf] == 2 {
		l.counters.Twice++
	}
	return l.attempts[attemptOf] == 1
}

// grant records a lease.
func (l *ledger) grant(i *Item) *span {
	s := &span{item: i, held: i.From}
	l.spans = append(l.spans, s)
	return s
}

// extend records that the lease is held at the time at, with the deadline until.
func (s *span) extend(at, until int64) {
	if s.settled && s.item.To != 0 {
		return // late news of a lease that has ended
	}
	s.held, s.settled = max(s.held, at), false
	s.item.Until = max(s.item.Until, until)
}

// end records that the lease ended. A holder relies on its lease until the deadline at the latest.
func (s *span) end(at int64, how string) {
	if s.item.To != 0 {
		return
	}
	s.item.To, s.item.End = at, how
	s.held, s.settled = max(s.held, min(at, s.item.Until)), true
}

// check settles leases whose end was not reported by grace after their deadline. It returns a text
// for each new pair of leases that overlap, and the items that have changed.
func (l *ledger) check(now time.Time) (found []string, changed []*Item) {
	for _, s := range l.spans {
		if !s.settled && now.UnixMilli() > s.item.Until+grace.Milliseconds() {
			s.held, s.settled = s.item.Until, true
		}
	}
	for i, a := range l.spans {
		for _, b := range l.spans[i+1:] {
			first, second := a, b
			if second.item.From < first.item.From {
				first, second = b, a
			}
			pair := [2]int{first.item.ID, second.item.ID}
			if a.item.Kind != b.item.Kind || a.item.Replica == b.item.Replica || first.held <= second.item.From || l.counted[pair] {
				continue
			}
			l.counted[pair] = true
			l.counters.Overlaps++
			first.item.Bad, second.item.Bad = true, true
			changed = append(changed, first.item, second.item)
			found = append(found, fmt.Sprintf("%s and %s both hold the lease of the %s: %s since %s, and %s could rely on it until %s",
				first.item.Replica, second.item.Replica, about[first.item.Kind],
				second.item.Replica, clock(second.item.From), first.item.Replica, clock(first.held)))
		}
	}
	return found, changed
}

var about = map[string]string{KindTerm: "election", KindRun: "job"}

// forget drops leases, ticks and attempts that are long over.
func (l *ledger) forget(now time.Time) {
	old := func(at int64, keep time.Duration) bool { return now.UnixMilli()-at > keep.Milliseconds() }
	l.spans = slices.DeleteFunc(l.spans, func(s *span) bool { return s.item.To != 0 && old(s.item.To, keepItems) })
	maps.DeleteFunc(l.ticks, func(tick int64, _ int) bool { return old(tick, keepTicks) })
	maps.DeleteFunc(l.attempts, func(a [2]int64, _ int) bool { return old(a[0], keepTicks) })
}

// clock formats a time for people, with milliseconds.
func clock(ms int64) string { return time.UnixMilli(ms).Format("15:04:05.000") }
