package joblog

import "time"

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Earlier returns the earlier of two times, or the first if the second is zero.
func Earlier(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}

// ticks is the log of a job after its cursor: the due times of the table, and the two ticks that
// the record itself has (Queued and Again).
type ticks struct {
	table  Table
	policy Policy
	record Record
	cursor time.Time
	full   bool      // Policy.Limit is reached
	queued time.Time // zero if there is none after the cursor
	again  time.Time // zero if there is none after the cursor
}

func newTicks(r Record, t Table, p Policy) ticks {
	l := ticks{table: t, policy: p, record: r, cursor: r.Cursor, full: p.Limit > 0 && r.Runs >= p.Limit}
	if p.Delivery == AtMostOnce {
		l.cursor = Later(l.cursor, r.Again.Tick) // granted while the delivery was at least once
	} else if r.Again.Tick.After(l.cursor) {
		l.again = r.Again.Tick
	}
	if r.Queued.After(l.cursor) && !l.full {
		l.queued = r.Queued
	}
	return l
}

// ofTable returns the first due time of the table after another.
func (l ticks) ofTable(after time.Time) time.Time {
	var at time.Time
	switch c, chain := l.table.(Chain); {
	case l.full:
	case chain:
		at = c.Within(l.record.Next)
	default:
		at = l.table.Next(Later(after, l.table.From()))
	}
	if !at.After(after) {
		return time.Time{}
	}
	return at
}

// next returns the first tick after another time; zero if there is none.
func (l ticks) next(after time.Time) time.Time {
	at := l.ofTable(after)
	for _, own := range []time.Time{l.queued, l.again} {
		if own.After(after) && (at.IsZero() || own.Before(at)) {
			at = own
		}
	}
	return at
}

// beside returns the span of Record.Beside that has a due time.
func (l ticks) beside(at time.Time) (Span, bool) {
	for _, s := range l.record.Beside {
		if s.has(at) {
			return s, true
		}
	}
	return Span{}, false
}

// Last returns the last time of next that is after one time and not after another; zero if there is
// none. It looks back from until in steps that double, then bisects, so that the cost does not grow
// with the number of times.
func Last(next func(time.Time) time.Time, after, until time.Time) time.Time {
	within := func(from time.Time) (time.Time, bool) {
		at := next(from)
		return at, !at.IsZero() && !at.After(until)
	}
	best, ok := within(after)
	if !ok {
		return time.Time{}
	}
	none := until // there is no time after none, up to until
	for step := time.Second; step > 0; step *= 2 {
		from := until.Add(-step)
		if !from.After(best) {
			break
		}
		if at, ok := within(from); ok {
			best = at
			break
		}
		none = from
	}
	for {
		at, ok := within(best)
		if !ok {
			return best
		}
		best = at
		middle := best.Add(none.Sub(best) / 2)
		if at, ok := within(middle); ok {
			best = at
		} else {
			none = middle
		}
	}
}

// count returns how many ticks there are from first to last, MaxCount at most.
func (l ticks) count(first, last time.Time) int {
	n := 1
	for ; n < MaxCount && first.Before(last); n++ {
		first = l.next(first)
	}
	return n
}
