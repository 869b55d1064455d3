package joblog_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/joblog"
)

// asked returns how often a table of each second is asked by a verdict after some time away.
func asked(t *testing.T, p joblog.Policy, away time.Duration) int {
	n := 0
	table := periodic{since: midnight, phase: midnight, period: time.Second, asked: &n}
	v := joblog.Owed(joblog.Record{Since: midnight, Cursor: midnight}, table, p, midnight.Add(away))
	require.True(t, v.Due)
	return n
}

// Back after 30 days, 2.6 million ticks were computed. What is left out is counted up to a bound.
func TestVerdictsCostDoesNotGrowWithTheTimeAway(t *testing.T) {
	for _, p := range []joblog.Policy{none, latest(time.Minute), latest(365 * 24 * time.Hour), all, {CatchUp: joblog.CatchUpAll, Window: 365 * 24 * time.Hour}} {
		require.LessOrEqual(t, asked(t, p, time.Second), 8, "%+v", p)
		for _, away := range []time.Duration{time.Hour, 30 * 24 * time.Hour, 365 * 24 * time.Hour} {
			require.LessOrEqual(t, asked(t, p, away), 2*joblog.MaxCount+400, "%+v %v", p, away)
		}
	}
}

// ended are due times that have an end.
type ended struct {
	periodic
	end time.Time
}

func (e ended) Next(after time.Time) time.Time {
	if at := e.periodic.Next(after); at.Before(e.end) {
		return at
	}
	return time.Time{}
}

// Many ticks long ago are not walked over either.
func TestVerdictsCostDoesNotGrowWithABurst(t *testing.T) {
	n := 0
	table := ended{periodic{since: midnight, phase: midnight, period: time.Second, asked: &n}, at("700h")}
	v := joblog.Owed(joblog.Record{Since: midnight}, table, latest(8760*time.Hour), at("1300h"))
	require.Equal(t, at("699h59m59s"), v.Tick)
	require.LessOrEqual(t, n, joblog.MaxCount+400)
}

// Nor does it with what a run overlapped.
func TestOverlapsCostDoesNotGrowWithTheRun(t *testing.T) {
	n := 0
	table := periodic{since: midnight, phase: midnight, period: time.Second, asked: &n}
	for _, p := range []joblog.Policy{none, queuing} {
		r := joblog.Begin(joblog.Record{Since: midnight}, table, p, joblog.Verdict{Tick: at("1s"), Attempt: 1}, joblog.Grant{At: at("1s")})
		n = 0
		r, left := joblog.End(r, table, p, joblog.Ending{Outcome: joblog.Succeeded, At: at("8760h"), Took: 8759 * time.Hour})
		require.LessOrEqual(t, n, joblog.MaxCount+400)
		require.Equal(t, joblog.MaxCount, left[0].Count)
		require.True(t, r.Cursor.After(at("8758h")))
	}
}
