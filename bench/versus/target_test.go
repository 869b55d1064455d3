package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/bench/internal/rival"
)

// TestTargetsAreMeasured finds a target for a row or a column that does not exist.
func TestTargetsAreMeasured(t *testing.T) {
	columns := make(map[string]bool)
	for _, r := range rows() {
		for _, c := range r.columns {
			require.False(t, columns[r.name+"/"+c.Name], "%s has two columns %q", r.name, c.Name)
			columns[r.name+"/"+c.Name] = true
		}
	}
	for _, target := range targets {
		require.True(t, columns[target.row+"/"+target.column], "%s: %s", target.row, target.column)
	}
}

func TestJudge(t *testing.T) {
	verdict := func(r *row, column string, values ...float64) string {
		b := newBoard(r)
		b.line(rival.Tenure.Name, rival.Tenure.Servers).Values[column] = values
		for _, j := range judge([]*board{b}, true) {
			if j.Column == column {
				return j.Verdict
			}
		}
		return ""
	}
	require.Equal(t, met, verdict(handoverRow(), "x floor", 0.2, 1.25, 7))
	require.Equal(t, missed, verdict(handoverRow(), "x floor", 0.2, 1.26, 7))
	require.Equal(t, met, verdict(contendedRow(), "acquisitions x floor", 0.9))
	require.Equal(t, missed, verdict(contendedRow(), "acquisitions x floor", 0.89))
	require.Equal(t, met, verdict(pairRow(), "keys left", 0))
	require.Equal(t, missed, verdict(pairRow(), "keys left", 1))

	held := newBoard(heldRow())
	for full, want := range map[bool]string{true: missed, false: notJudged} {
		held.line(rival.Tenure.Name, "5").Values["CPU s"] = []float64{0.5}
		require.Equal(t, want, judge([]*board{held}, full)[0].Verdict)
	}
	many := newBoard(distinctRow(64))
	many.line(rival.TenureStandby.Name, "5").Values["x no standby"] = []float64{0.96}
	for _, j := range judge([]*board{many}, true) {
		if j.Rival == rival.TenureStandby.Name {
			require.Equal(t, met, j.Verdict, "it is of another line")
		}
	}
	require.Equal(t, "missed: not measured", judge([]*board{newBoard(pairRow())}, true)[0].Verdict, "no numbers are no success")
}

func TestMissedTargets(t *testing.T) {
	var w strings.Builder
	missedTargets(&w, nil)
	require.Empty(t, w.String())
	missedTargets(&w, []judgement{{Row: "pair", Column: "p50 x floor", Rival: "Tenure", Target: "at most 1.10 x floor", Result: 1.234, Verdict: missed},
		{Row: "pair", Column: "keys left", Rival: "Tenure", Verdict: met}})
	require.Equal(t, "Of 2 targets 1 are met. pair, p50 x floor 1.23 (at most 1.10 x floor): missed\n\n", w.String())
}
