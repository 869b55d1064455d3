package joblog

import (
	"slices"
	"strings"
	"time"
)

// Grant says which replica begins a run, under which lease and when.
type Grant struct {
	Token uint64    // of the lease
	By    string    // identity of the replica, cut to 256 bytes
	At    time.Time // when the run begins; the due time if the tick is asked for ahead
}

// Ending is how a run ended.
type Ending struct {
	Outcome Outcome
	At      time.Time     // by the clocks of the nodes
	Own     time.Time     // by the clock of the replica, as Grant.At is; a Chain counts from it
	Took    time.Duration // the task's time, without acquisition and release
}

// Adopt returns the record with a definition, and the definition's table. It changes nothing if the
// record has that definition already. Now is the median of the nodes' clocks. The new definition
// begins after the cursor, so that a due time in both definitions is run once.
func Adopt(r Record, d Definition, now time.Time) (Record, Table) {
	if r.Words == d.Words && !r.Since.IsZero() {
		return r, d.Table(r.Since)
	}
	since := Later(now, r.Cursor.Add(time.Millisecond)).UTC().Truncate(time.Millisecond)
	t := d.Table(since)
	r.Words, r.Since, r.Runs, r.Next = d.Words, since, 0, time.Time{}
	if _, chain := t.(Chain); chain {
		r.Next = t.Next(t.From()).UTC()
	}
	return r, t
}

// Restore returns a record that has adopted a definition just now with that definition as it was
// made before, at since, and its table. The start of a Chain at once is not due again.
func Restore(r Record, d Definition, since time.Time) (Record, Table) {
	t := d.Table(since)
	if c, chain := t.(Chain); chain && r.Next.Equal(r.Since) {
		r.Next = c.Follow(r.Since).UTC()
	}
	r.Since = since
	return r, t
}

// Settle returns the record of a job that has nothing to run. The cursor is past the ticks that the
// verdict left out, and a run that has not ended is CutShort. The caller has the lease.
func Settle(r Record, t Table, v Verdict, now time.Time) Record {
	if _, unended := r.Unended(); unended {
		r.Run.Ended, r.Run.Outcome = now.UTC(), CutShort
	}
	if v.Filled {
		r.Fill = Fill{}
	}
	return r.settle(v.Cursor).follow(t, now)
}

// Begin returns the record in which the verdict's tick is granted. Nothing may be run until a
// quorum has that record. A Verdict{Why: Ordered} has no tick.
func Begin(r Record, t Table, p Policy, v Verdict, g Grant) Record {
	v.Tick = v.Tick.UTC()
	r.Run = Run{Tick: v.Tick, Attempt: max(1, v.Attempt), Why: v.Why, Token: g.Token, By: cut(g.By), Began: g.At.UTC()}
	if r.Run.Attempt == 1 {
		r.Runs++
	}
	switch {
	case v.Why == Ordered:
		return r
	case v.Why != Backfill && p.Delivery == AtMostOnce:
		v.Cursor = v.Tick
	case v.Why != Backfill:
		r.Again = Attempt{Tick: v.Tick, N: v.Attempt}
		if r.Queued.Equal(v.Tick) {
			r.Queued = time.Time{} // from now on it is Again, and ages
		}
	case p.Delivery == AtMostOnce:
		r = r.filled(t, v.Tick)
	default:
		r.Fill.Begun = v.Attempt
	}
	r = r.settle(v.Cursor)
	if c, chain := t.(Chain); chain && !c.FromEnd() {
		r = r.follow(t, Later(g.At, v.Tick))
	}
	return r
}

// Retry returns the record of a run whose task is called again. The attempt is written before it is
// made, so that the count survives the death of the replica.
func Retry(r Record) Record {
	r.Run.Attempt++
	switch {
	case r.Run.Why == Backfill && r.Fill.Begun > 0:
		r.Fill.Begun = r.Run.Attempt
	case r.Run.Why != Backfill && r.Run.Why != Ordered && r.Again.Tick.Equal(r.Run.Tick):
		r.Again.N = r.Run.Attempt
	}
	return r
}

// End returns the record in which the run has ended, and the overlapped ticks that are left out. It
// may be called again for the same run.
func End(r Record, t Table, p Policy, e Ending) (Record, []Left) {
	r.Run.Ended, r.Run.Outcome, r.Run.Took = e.At.UTC(), e.Outcome, max(0, e.Took)
	if e.Outcome == Succeeded {
		r.OK = Success{Tick: r.Run.Tick, Ended: r.Run.Ended}
	}
	// In a backfill a panic is final: its ticks are past, so no window would end the attempts.
	over := p.Delivery == AtMostOnce || e.Outcome.Complete() || r.Run.Why == Backfill && e.Outcome == Panicked
	switch r.Run.Why {
	case Ordered, Backfill:
		if r.Run.Why == Backfill && over {
			r = r.filled(t, r.Run.Tick)
		}
		if r.Run.Why == Backfill && e.Outcome == Cancelled {
			r.Fill = Fill{}
		}
		return r.cameBeside(t, p).follow(t, e.Own), nil
	}
	if !over {
		return r, nil
	}
	r = r.settle(r.Run.Tick)
	if c, chain := t.(Chain); chain {
		base := r.Run.Began
		if c.FromEnd() && !r.Next.IsZero() {
			base, r.Next = e.Own, r.Cursor
		}
		r = r.follow(t, base)
	}
	began := Later(r.Run.Tick, r.Run.Began)
	if p.CatchUp == CatchUpAll && r.Run.Why == OnTime {
		began = r.Run.Tick // ticks that came only because it began a little late are run
	}
	// If a clock was set back during the run, Took may reach beyond Ended. Ticks after Ended are
	// not due.
	l, until := newTicks(r, t, p), Earlier(began.Add(r.Run.Took), r.Run.Ended)
	first, final := l.next(l.cursor), Last(l.next, l.cursor, until)
	switch {
	case final.IsZero():
		return r, nil
	case p.CatchUp == CatchUpAll && (r.Run.Why == Late || r.Run.Why == Again || !first.After(r.Run.Began)):
		// A late run overlaps nothing: the older ticks that are due are run first, then the ticks
		// that came during the run.
		if p.Overlap != OverlapSkip && final.After(r.Run.Began) {
			r.Queued = final.UTC()
		}
		return r, nil
	case !first.After(r.Run.Began): // ticks were due when it began: it does not overlap those
		return r.cameBeside(t, p).follow(t, e.Own), nil
	}
	settled := final
	if p.Overlap != OverlapSkip {
		r.Queued, settled = final.UTC(), final.Add(-1)
		final = Last(l.next, l.cursor, settled)
	}
	var left []Left
	if !final.IsZero() {
		left = []Left{{Reason: Overlapped, First: first, Last: final, Count: l.count(first, final)}}
	}
	return r.settle(settled).follow(t, e.Own), left
}

// Backfill returns the record with a backfill of the past ticks between two times, both included.
// It replaces an earlier backfill. It returns false if there can be no such ticks: the job was
// never seen, its table is a Chain, or the time is empty. If no tick is due in that time, Owed
// finds that out and Settle clears the backfill.
func (r Record) Backfill(from, to, now time.Time) (Record, bool) {
	r.Fill = Fill{From: from.UTC().Add(-1), To: Earlier(to, now).UTC()}
	return r, r.Words != "" && r.Next.IsZero() && r.Fill.To.After(r.Fill.From)
}

// filled moves the backfill beyond a tick, and clears it after its last tick.
func (r Record) filled(t Table, tick time.Time) Record {
	r.Fill.From, r.Fill.Begun = Later(r.Fill.From, tick.UTC()), 0
	if r.Fill.next(t).IsZero() {
		r.Fill = Fill{}
	}
	return r
}

// next returns the first tick of a backfill; zero if there is none. A Chain has none.
func (f Fill) next(t Table) time.Time {
	if _, chain := t.(Chain); chain || f.To.IsZero() {
		return time.Time{}
	}
	at := t.Next(f.From)
	if !at.After(f.From) || at.After(f.To) {
		return time.Time{}
	}
	return at
}

// settle moves the cursor on, and drops everything that it has passed.
func (r Record) settle(cursor time.Time) Record {
	r.Cursor = Later(r.Cursor, cursor.UTC())
	if !r.Queued.After(r.Cursor) {
		r.Queued = time.Time{}
	}
	if !r.Again.Tick.After(r.Cursor) {
		r.Again = Attempt{}
	}
	r.Beside = slices.DeleteFunc(slices.Clone(r.Beside), func(s Span) bool { return !s.To.After(r.Cursor) })
	return r
}

// follow sets the next tick of a Chain if the cursor has passed it. A record without a next tick
// stays without: it may be of another definition.
func (r Record) follow(t Table, run time.Time) Record {
	if c, chain := t.(Chain); chain && !r.Next.IsZero() && !r.Next.After(r.Cursor) {
		r.Next = c.Follow(run).UTC()
	}
	return r
}

// cameBeside notes the span of a run that overlapped ticks which the cursor cannot pass, because
// earlier ticks may still be owed. Such a run was ordered, was of a backfill, or began when further
// ticks were due.
func (r Record) cameBeside(t Table, p Policy) Record {
	l, s := newTicks(r, t, p), Span{From: r.Run.Began, To: Earlier(r.Run.Began.Add(r.Run.Took), r.Run.Ended)}
	final := Last(l.ofTable, Later(l.cursor, s.From.Add(-1)), s.To)
	if final.IsZero() {
		return r
	}
	if p.Overlap != OverlapSkip || r.Run.Why == Backfill {
		r.Queued, s.To = final.UTC(), final.Add(-1).UTC()
	}
	if s.To.Before(s.From) {
		return r
	}
	r.Beside = slices.DeleteFunc(slices.Clone(r.Beside), func(o Span) bool { return o.From.Equal(s.From) })
	r.Beside = append(r.Beside, s)
	r.Beside = r.Beside[max(0, len(r.Beside)-maxSpans):]
	return r
}

// cut shortens an identity to maxBy bytes.
func cut(by string) string { return strings.ToValidUTF8(by[:min(len(by), maxBy)], "") }
