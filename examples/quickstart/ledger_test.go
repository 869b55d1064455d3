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
		runs          []int64
		summary, fail string
	}{
		"nothing ran":           {fail: "no tick ran"},
		"every tick once":       {runs: []int64{5, 3, 4}, summary: "summary: 3 ticks were due from " + at(3) + " to " + at(5) + "\n  ran once      3\n"},
		"twice and three times": {runs: []int64{3, 4, 4, 5, 5, 5, 6}, summary: "ran twice     2  " + at(4) + ", " + at(5), fail: "2 ticks ran more than once, 0 were lost"},
		"lost":                  {runs: []int64{1, 3, 6}, summary: "lost          3  " + at(2) + ", " + at(4) + ", " + at(5), fail: "0 ticks ran more than once, 3 were lost"},
	} {
		t.Run(name, func(t *testing.T) {
			l := make(ledger)
			for i, tick := range tc.runs {
				n := 1
				for _, earlier := range tc.runs[:i] {
					if earlier == tick {
						n++
					}
				}
				require.Equal(t, n, l.record(time.Unix(begin+tick, 0)))
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
