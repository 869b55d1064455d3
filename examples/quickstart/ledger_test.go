package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLedger(t *testing.T) {
	const begin = 1_800_000_000
	at := func(second int64) string { return clock(begin + second) }
	for name, tc := range map[string]struct {
		runs          [][2]int64 // tick and attempt
		summary, fail string
	}{
		"nothing ran":     {fail: "no tick ran"},
		"every tick once": {runs: [][2]int64{{5, 1}, {3, 1}, {4, 2}}, summary: "summary: 3 ticks were due from " + at(3) + " to " + at(5) + "\n  ran once                     3\n"},
		"run again":       {runs: [][2]int64{{3, 1}, {3, 2}}, summary: "cut short, and run again     1  " + at(3)},
		"twice": {
			runs:    [][2]int64{{3, 1}, {4, 1}, {4, 1}, {5, 1}, {5, 2}, {5, 2}, {6, 1}},
			summary: "ran twice                    2  " + at(4) + ", " + at(5), fail: "2 ticks ran twice, 0 were lost",
		},
		"lost": {
			runs:    [][2]int64{{1, 1}, {3, 1}, {6, 1}},
			summary: "lost                         3  " + at(2) + ", " + at(4) + ", " + at(5), fail: "0 ticks ran twice, 3 were lost",
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := make(ledger)
			latest := make(map[int64]int64)
			for _, r := range tc.runs {
				require.Equal(t, r[1] > latest[r[0]], l.record(time.Unix(begin+r[0], 0), int(r[1])))
				latest[r[0]] = r[1]
			}
			text, err := l.check()
			require.Contains(t, text, tc.summary)
			if tc.fail == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tc.fail)
			}
		})
	}
}
