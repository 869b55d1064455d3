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
	verdict := func(r *row, column string, full bool, values ...float64) bool {
		b := newBoard(r)
		b.line(rival.Tenure).values[column] = values
		return strings.Contains(judge([]*board{b}, full), r.name+", "+column+" ")
	}
	for i, missed := range []bool{
		verdict(handoverRow(), "x floor", true, 0.2, 1.26, 7),
		verdict(contendedRow(), "acquisitions x floor", true, 0.89),
		verdict(pairRow(), "keys left", true, 1),
		verdict(heldRow(), "CPU s", true, 0.5),
		verdict(heldRow(), "CPU s", false, 0.4), // not judged
		verdict(pairRow(), "keys left", true),   // no numbers are no success
	} {
		require.True(t, missed, "%d", i)
	}
	for i, missed := range []bool{
		verdict(handoverRow(), "x floor", true, 0.2, 1.25, 7),
		verdict(contendedRow(), "acquisitions x floor", true, 0.9),
		verdict(pairRow(), "keys left", true, 0),
	} {
		require.False(t, missed, "%d", i)
	}
	many := newBoard(distinctRow())
	many.line(rival.TenureStandby).values["x no standby"] = []float64{0.96}
	require.NotContains(t, judge([]*board{many}, true), "no standby", "it is of another line")
}
