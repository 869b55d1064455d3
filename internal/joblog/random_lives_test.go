package joblog_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/tenure-dev/tenure/internal/joblog"
)

// history is what became of each due time of one definition, as it is seen from outside.
type history struct {
	t        *rapid.T
	policy   joblog.Policy
	step     time.Duration
	begun    map[time.Time]int
	complete map[time.Time]bool
	left     map[time.Time]joblog.Reason
	cursor   time.Time
	tokens   map[uint64]bool // of runs that were told as cut short
}

func (h *history) begin(r joblog.Record) {
	tick := r.Run.Tick
	require.Empty(h.t, h.left[tick], "%v is run although it was left out", tick)
	require.False(h.t, h.complete[tick], "%v is run although it was complete", tick)
	h.begun[tick]++
	if h.policy.Delivery == joblog.AtMostOnce {
		require.Equal(h.t, 1, h.begun[tick], "%v is run twice", tick)
	}
	require.Equal(h.t, h.begun[tick], r.Run.Attempt)
}

// leave notes what is left out.
func (h *history) leave(left []joblog.Left) {
	for _, l := range left {
		n := 0
		for at := l.First; !at.After(l.Last); at = at.Add(h.step) {
			n++
			require.Empty(h.t, h.left[at], "%v is left out twice", at)
			require.False(h.t, h.complete[at], "%v is left out although it was complete", at)
			if h.begun[at] > 0 {
				require.Equal(h.t, joblog.AtLeastOnce, h.policy.Delivery, "%v is left out although it was run", at)
			}
			h.left[at] = l.Reason
		}
		require.Equal(h.t, l.Count, n)
	}
}

func (h *history) record(r joblog.Record) {
	require.False(h.t, r.Cursor.Before(h.cursor), "the cursor went from %v back to %v", h.cursor, r.Cursor)
	h.cursor = r.Cursor
}

func seconds(t *rapid.T, name string, most int) time.Duration {
	return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Second / 2
}

// Random lives: replicas that are killed before, in and after a run, writes whose answer is lost,
// runs by order, pauses. Each due time is run or left out for a reason that is told, never both,
// and never twice.
func TestRandomLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		p.Limit = 0
		step := time.Duration(rapid.SampledFrom([]int{1, 4, 30}).Draw(t, "step")) * time.Second
		r, table := joblog.Adopt(joblog.Record{}, every(step), midnight)
		h := &history{t: t, policy: p, step: step, begun: map[time.Time]int{}, complete: map[time.Time]bool{}, left: map[time.Time]joblog.Reason{}, tokens: map[uint64]bool{}}
		now, token := midnight, uint64(0)
		for range rapid.IntRange(1, 40).Draw(t, "turns") {
			now = now.Add(seconds(t, "later", 60))
			switch rapid.IntRange(0, 9).Draw(t, "pause") {
			case 0:
				p.Floor = now
			case 1:
				p.Floor = now.Add(time.Hour)
			case 2, 3:
				if p.Floor.After(now) {
					p.Floor = now
				}
			}
			v, before := joblog.Owed(r, table, p, now), r
			ordered := rapid.IntRange(0, 9).Draw(t, "order") == 0
			if ordered {
				v = joblog.Verdict{Why: joblog.Ordered}
			}
			if run := v.CutShort; !run.Began.IsZero() {
				require.False(t, h.tokens[run.Token], "cut short is told twice")
				h.tokens[run.Token] = true
			}
			if !ordered && !v.Due {
				if v.Settles {
					r = joblog.Settle(r, table, v, now)
					h.leave(v.Left)
					h.record(r)
				}
				continue
			}
			token++
			r = joblog.Begin(r, table, p, v, joblog.Grant{Token: token, By: "replica", At: now})
			if !ordered && rapid.IntRange(0, 9).Draw(t, "unknown") == 0 {
				r = before // no answer: the holder writes the record of before
				delete(h.tokens, v.CutShort.Token)
				continue
			}
			if !ordered {
				h.leave(v.Left)
				h.begin(r)
			}
			h.record(r)
			took := seconds(t, "took", 90)
			now = now.Add(took + seconds(t, "release", 20))
			outcome := rapid.SampledFrom([]joblog.Outcome{
				joblog.Succeeded, joblog.Succeeded, joblog.Failed, joblog.Panicked, joblog.Cancelled, joblog.Stopped, joblog.CutShort,
			}).Draw(t, "outcome")
			if outcome == joblog.CutShort {
				continue // killed
			}
			var left []joblog.Left
			r, left = joblog.End(r, table, p, joblog.Ending{Outcome: outcome, At: now, Own: now, Took: took})
			h.leave(left)
			if !ordered && outcome.Complete() {
				h.complete[v.Tick] = true
			}
			h.record(r)
		}
		h.account(r)
	})
}

// account looks for due times of which nothing is known, and for runs that were never told.
func (h *history) account(r joblog.Record) {
	for at := range h.left {
		require.False(h.t, at.After(r.Cursor))
	}
	for at := range h.complete {
		require.False(h.t, at.After(r.Cursor))
	}
	for at := midnight.Add(h.step); !at.After(r.Cursor); at = at.Add(h.step) {
		_, left := h.left[at]
		require.True(h.t, left || h.begun[at] > 0, "%v is settled, and was neither run nor left out", at)
		if h.policy.Delivery == joblog.AtLeastOnce {
			require.True(h.t, left || h.complete[at], "%v is settled, and its run is not complete", at)
		}
	}
}

// drawTimes draws due times within the first minutes after midnight: of every so many seconds, with
// gaps, or in bursts.
func drawTimes(t *rapid.T) (due []time.Time) {
	step := rapid.SampledFrom([]int{1, 3, 10, 60}).Draw(t, "step")
	kept := rapid.SliceOfN(rapid.IntRange(0, 3), 64, 64).Draw(t, "kept")
	for i := range rapid.IntRange(0, 300).Draw(t, "times") {
		if kept[i%64] > 0 && (i/40)%3 != 1 {
			due = append(due, midnight.Add(time.Duration(i*step)*time.Second))
		}
	}
	return due
}

func drawTime(t *rapid.T, name string) time.Time {
	if rapid.IntRange(0, 9).Draw(t, name+"?") == 0 {
		return time.Time{}
	}
	ns := rapid.SampledFrom([]time.Duration{0, 0, 0, -1, 1, 400 * time.Millisecond}).Draw(t, name+"+")
	return midnight.Add(time.Duration(rapid.IntRange(-20, 1000).Draw(t, name))*time.Second + ns)
}

func drawPolicy(t *rapid.T) joblog.Policy {
	return joblog.Policy{
		CatchUp:  joblog.CatchUp(rapid.IntRange(0, 2).Draw(t, "catch-up")),
		Window:   time.Duration(rapid.SampledFrom([]int{1, 7, 60, 400}).Draw(t, "window")) * time.Second,
		Delivery: joblog.Delivery(rapid.IntRange(0, 1).Draw(t, "delivery")),
		Overlap:  joblog.Overlap(rapid.IntRange(0, 2).Draw(t, "overlap")),
		Limit:    rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "limit"),
	}
}

func drawRecord(t *rapid.T) joblog.Record {
	r := joblog.Record{
		Since: midnight, Cursor: drawTime(t, "cursor"), Runs: rapid.IntRange(0, 4).Draw(t, "runs"),
		Queued: drawTime(t, "queued"), Next: drawTime(t, "next"),
	}
	if rapid.Bool().Draw(t, "begun") {
		r.Again = joblog.Attempt{Tick: drawTime(t, "again"), N: rapid.IntRange(1, 9).Draw(t, "attempt")}
	}
	for range rapid.IntRange(0, 3).Draw(t, "beside") {
		from := midnight.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "from")) * time.Second)
		r.Beside = append(r.Beside, joblog.Span{From: from, To: from.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "to")) * time.Second)})
	}
	slices.SortFunc(r.Beside, func(a, b joblog.Span) int { return a.From.Compare(b.From) })
	return r
}

// walked is what a walk over each tick says, one after the other.
type walked struct {
	run    time.Time // zero if none
	left   []joblog.Left
	next   time.Time // the first that is not due
	cursor time.Time
}

// walk looks at each due time of a table, and at the record's own.
func walk(r joblog.Record, due []time.Time, from time.Time, chained bool, p joblog.Policy, now time.Time) (w walked) {
	w.cursor = r.Cursor
	again, queued := r.Again.Tick, r.Queued
	if p.Delivery == joblog.AtMostOnce {
		if again.After(w.cursor) {
			w.cursor = again
		}
		again = time.Time{}
	}
	full := p.Limit > 0 && r.Runs >= p.Limit
	var ticks []time.Time
	switch {
	case full:
		queued = time.Time{}
	case chained:
		ticks = append(ticks, r.Next)
	default:
		for _, at := range due {
			if at.After(from) {
				ticks = append(ticks, at)
			}
		}
	}
	ticks = append(ticks, again, queued)
	slices.SortFunc(ticks, time.Time.Compare)
	ticks = slices.CompactFunc(ticks, time.Time.Equal)

	age := p.Window
	if p.CatchUp == joblog.CatchUpNone {
		age = joblog.Grace
	}
	type late struct {
		at     time.Time
		reason joblog.Reason // Superseded: it could be run
	}
	var lates []late
	for _, at := range ticks {
		if !at.After(w.cursor) || at.IsZero() {
			continue
		}
		if at.After(now) {
			w.next = at
			break
		}
		l := late{at, joblog.Superseded}
		beside := slices.ContainsFunc(r.Beside, func(s joblog.Span) bool { return !at.Before(s.From) && !at.After(s.To) })
		switch old := now.Sub(at) > age; {
		case !at.After(p.Floor):
			l.reason = joblog.Paused
		case at.Equal(queued):
		case at.Equal(again):
			if old {
				l.reason = joblog.Missed
			}
		case beside:
			l.reason = joblog.Overlapped
		case old:
			l.reason = joblog.Missed
		}
		lates = append(lates, l)
	}
	for _, l := range lates {
		if l.reason == joblog.Superseded {
			w.run = l.at
			if p.CatchUp == joblog.CatchUpAll {
				break
			}
		}
	}
	for _, l := range lates {
		if !w.run.IsZero() && !l.at.Before(w.run) {
			break
		}
		w.cursor = l.at
		if n := len(w.left); n > 0 && w.left[n-1].Reason == l.reason {
			w.left[n-1].Last = l.at
			w.left[n-1].Count++
		} else {
			w.left = append(w.left, joblog.Left{Reason: l.reason, First: l.at, Last: l.at, Count: 1})
		}
	}
	return w
}

// Random records, policies and times: what Owed says is what a walk over each tick says.
func TestOwedAgainstAWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		due, r, p := drawTimes(t), drawRecord(t), drawPolicy(t)
		p.Floor = drawTime(t, "floor")
		now := midnight.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "now"))*time.Second + 1)
		from := drawTime(t, "since")
		isChain := rapid.IntRange(0, 3).Draw(t, "chain") == 0
		var table joblog.Table = list{from: from, times: due}
		if isChain {
			table = chained(time.Minute, false).Table(midnight)
		}
		v := joblog.Owed(r, table, p, now)
		w := walk(r, due, from, isChain, p, now)
		require.Equal(t, w.left, v.Left)
		require.Equal(t, w.cursor, v.Cursor)
		require.False(t, v.Cursor.Before(r.Cursor))
		passed := isChain && !r.Next.IsZero() && !r.Next.After(w.cursor)
		require.Equal(t, passed || len(w.left) > 0, v.Settles)
		want := w.run
		if want.IsZero() {
			want = w.next
		}
		require.True(t, want.Equal(v.Tick), "want %v, got %v", want, v.Tick)
		require.Equal(t, want.IsZero() && !v.Settles, v.Over)
		require.Equal(t, !w.run.IsZero(), v.Due)
		if v.Due {
			require.True(t, v.Tick.After(v.Cursor), "%v is settled and owed", v.Tick)
			require.False(t, v.Tick.After(now))
			if r.Again.Tick.Equal(v.Tick) && p.Delivery == joblog.AtLeastOnce {
				require.Equal(t, r.Again.N+1, v.Attempt)
			} else {
				require.Equal(t, 1, v.Attempt)
			}
			if v.Until.IsZero() {
				require.Equal(t, r.Queued, v.Tick)
			} else {
				require.False(t, v.Until.Before(now))
				later := joblog.Owed(r, table, p, v.Until.Add(1))
				require.False(t, later.Due && later.Tick.Equal(v.Tick), "it is too old after Until")
			}
		} else if !v.Over {
			require.Equal(t, v.Tick, v.At)
		}
	})
}
