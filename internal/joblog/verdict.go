package joblog

import "time"

// Verdict is what the log owes at a time.
type Verdict struct {
	Tick    time.Time // the tick to run next; zero if none is known
	Attempt int       // from 1
	Why     Why
	Due     bool      // the tick is to be run now
	At      time.Time // if not Due: when to ask Owed again at the latest; zero if only the run of another replica decides
	Until   time.Time // if Due: the tick is too old after this; zero if it does not age

	Cursor   time.Time // the record's cursor, past the ticks that are left out
	Left     []Left    // ticks that are left out, the oldest first
	CutShort Run       // if its Began is set, this run has not ended, see Record.Unended
	Settles  bool      // even if nothing is Due, Settle's record is to be written, and Left and CutShort to be told
	Filled   bool      // no tick of the backfill is left: Settle clears it
	Over     bool      // no tick is left, not even of a backfill, and nothing is to be written
}

// Left is consecutive ticks that are left out for one reason.
type Left struct {
	Reason      Reason
	First, Last time.Time
	Count       int // MaxCount if there are that many or more
}

// MaxCount bounds the count of ticks that are left out.
const MaxCount = 1000

// Owed returns what is to be done at a time. The cost does not depend on how long the job was away:
// it asks the table some ten times if nothing was missed, and some thousand times at most.
func Owed(r Record, t Table, p Policy, now time.Time) Verdict {
	l := newTicks(r, t, p)
	v := Verdict{Cursor: l.cursor}
	run, unended := r.Unended()
	if unended {
		v.CutShort = run
	}
	next := l.next(l.cursor)
	if !next.IsZero() && !next.After(now) {
		tick := l.choose(now)
		v.Left = l.left(tick, now)
		if n := len(v.Left); n > 0 {
			v.Cursor = v.Left[n-1].Last
		}
		next = l.next(now)
		if !tick.IsZero() {
			v.offer(l, tick, now, next)
		}
	}
	fill := r.Fill.next(t)
	_, chain := t.(Chain)
	passed := chain && !r.Next.IsZero() && !r.Next.After(l.cursor) // by a run of another version or delivery
	v.Filled = fill.IsZero() && !r.Fill.To.IsZero()
	v.Settles = unended || passed || len(v.Left) > 0 || v.Filled
	if v.Tick.IsZero() && !fill.IsZero() && !fill.After(now) && p.Floor.Before(now) { // no backfill during a pause
		v.Tick, v.Attempt, v.Why = fill, r.Fill.Begun+1, Backfill
		v.when(r, now, next)
	}
	if v.Tick.IsZero() && !next.IsZero() {
		v.Tick, v.Attempt, v.Why, v.At = next, 1, OnTime, next
	}
	v.Over = v.Tick.IsZero() && !v.Settles && fill.IsZero()
	return v
}

// offer sets a tick that is due as the tick to run.
func (v *Verdict) offer(l ticks, tick, now, next time.Time) {
	v.Tick, v.Attempt, v.Why = tick, 1, OnTime
	if !tick.Equal(l.queued) {
		v.Until = tick.Add(l.policy.age())
	}
	switch {
	case tick.Equal(l.again):
		v.Attempt, v.Why = l.record.Again.N+1, Again
	case tick.Equal(l.queued):
		v.Why = Queued
	case now.Sub(tick) > Grace:
		v.Why = Late
	}
	v.when(l.record, now, next)
}

// when sets whether the tick may begin now, or when its pause after a failed attempt ends.
func (v *Verdict) when(r Record, now, next time.Time) {
	rested := now
	if v.Attempt > 1 && r.Run.Tick.Equal(v.Tick) && r.Run.Outcome != Stopped {
		// Began and now are by the clocks of replicas. Ended is by the nodes' clocks, and no use
		// here.
		rested = Later(now, r.Run.Began.Add(r.Run.Took).Add(rest(v.Attempt-1)))
	}
	if v.Due = !rested.After(now); v.Due {
		return
	}
	v.At = Earlier(rested, next)
}

// rest returns the pause after a number of attempts that did not complete: a second, doubled up to
// a minute.
func rest(attempts int) time.Duration { return min(time.Second<<min(attempts-1, 6), time.Minute) }

// bounds returns the time up to which ticks are paused or settled, and the time up to which ticks
// are too old if they age.
func (l ticks) bounds(now time.Time) (settled, old time.Time) {
	settled = Later(l.cursor, l.policy.Floor)
	return settled, Later(settled, now.Add(-l.policy.age()-1))
}

// choose returns the tick to run among those that are due; zero if there is none.
func (l ticks) choose(now time.Time) time.Time {
	settled, old := l.bounds(now)
	var tick time.Time
	prefer := func(at time.Time) {
		if all := l.policy.CatchUp == CatchUpAll; tick.IsZero() || all && at.Before(tick) || !all && at.After(tick) {
			tick = at
		}
	}
	if at := l.fromTable(old, now); !at.IsZero() {
		prefer(at)
	}
	if l.queued.After(settled) && !l.queued.After(now) {
		prefer(l.queued)
	}
	if l.again.After(old) && !l.again.After(now) {
		prefer(l.again)
	}
	return tick
}

// fromTable returns the first due time of the table after one time and not after another; if not
// all are to be run, the last. It passes over due times in a span of Record.Beside.
func (l ticks) fromTable(after, until time.Time) time.Time {
	for {
		var at time.Time
		if l.policy.CatchUp != CatchUpAll {
			at = Last(l.ofTable, after, until)
		} else if at = l.ofTable(after); at.After(until) {
			return time.Time{}
		}
		s, beside := l.beside(at)
		if at.IsZero() || !beside {
			return at
		}
		if l.policy.CatchUp == CatchUpAll {
			after = s.To
		} else {
			until = s.From.Add(-1)
		}
	}
}

// left returns the ticks that are due and not run: those before a tick, or all if that is zero.
func (l ticks) left(before, now time.Time) (left []Left) {
	until := now
	if !before.IsZero() {
		until = before.Add(-1)
	}
	for at := l.next(l.cursor); !at.IsZero() && !at.After(until); {
		reason, end := l.reason(at, now)
		end = Later(at, Last(l.next, at.Add(-1), Earlier(end, until)))
		if n := len(left); n > 0 && left[n-1].Reason == reason {
			left[n-1].Last = end
		} else {
			left = append(left, Left{Reason: reason, First: at, Last: end})
		}
		at = l.next(end)
	}
	for i := range left {
		left[i].Count = l.count(left[i].First, left[i].Last)
	}
	return left
}

// reason returns why a tick is left out, and until when ticks have the same reason.
func (l ticks) reason(at, now time.Time) (Reason, time.Time) {
	settled, old := l.bounds(now)
	switch own := at.Equal(l.again); {
	case !at.After(settled):
		return Paused, settled
	case at.Equal(l.queued), own && at.After(old):
		return Superseded, at
	case own:
		return Missed, at
	}
	reason, until := Superseded, now
	if s, beside := l.beside(at); beside {
		reason, until = Overlapped, s.To
	} else if !at.After(old) {
		reason, until = Missed, old
	}
	for _, other := range []time.Time{l.queued, l.again} {
		if other.After(at) {
			until = Earlier(until, other.Add(-1))
		}
	}
	for _, s := range l.record.Beside {
		if s.From.After(at) {
			until = Earlier(until, s.From.Add(-1))
		}
	}
	return reason, until
}
