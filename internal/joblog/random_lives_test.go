package joblog_test

import (
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
			r, left = joblog.End(r, table, p, joblog.Ending{Outcome: outcome, At: now, Took: took})
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
