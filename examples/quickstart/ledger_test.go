package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// at is an instant that many seconds after some whole second.
func at(seconds float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func ticks(seconds ...float64) []time.Time {
	var all []time.Time
	for _, s := range seconds {
		all = append(all, at(s))
	}
	return all
}

func TestLedger(t *testing.T) {
	for name, tc := range map[string]struct {
		runs              []time.Time
		killed, takenOver time.Time
		want              account
	}{
		"nothing ran": {killed: at(1), takenOver: at(2)},
		"every tick once": {
			runs: ticks(3, 4, 5),
			want: account{first: at(3), last: at(5), ticks: 3, once: 3},
		},
		"in any order": {
			runs: ticks(5, 3, 4),
			want: account{first: at(3), last: at(5), ticks: 3, once: 3},
		},
		"twice and three times": {
			runs: ticks(3, 4, 4, 5, 5, 5, 6),
			want: account{first: at(3), last: at(6), ticks: 4, once: 2, repeated: ticks(4, 5)},
		},
		"missed in the take-over": {
			runs: ticks(3, 4, 7, 8), killed: at(4.01), takenOver: at(6.2),
			want: account{first: at(3), last: at(8), ticks: 6, once: 4, takeOver: ticks(5, 6)},
		},
		"missed before and after it": {
			runs: ticks(1, 3, 6, 8), killed: at(3.01), takenOver: at(5.2),
			want: account{first: at(1), last: at(8), ticks: 8, once: 4, takeOver: ticks(4, 5), missed: ticks(2, 7)},
		},
		"missed without a kill": {
			runs: ticks(1, 3),
			want: account{first: at(1), last: at(3), ticks: 3, once: 2, missed: ticks(2)},
		},
		"missed after a kill that nobody survived": {
			runs: ticks(1, 3), killed: at(1.5),
			want: account{first: at(1), last: at(3), ticks: 3, once: 2, missed: ticks(2)},
		},
		"twice in the take-over": {
			runs: ticks(1, 2, 2, 3), killed: at(1.5), takenOver: at(2.5),
			want: account{first: at(1), last: at(3), ticks: 3, once: 2, repeated: ticks(2)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			for _, tick := range tc.runs {
				l.record(tick)
			}
			require.Equal(t, len(tc.runs) > 0, l.ran())
			require.Equal(t, tc.want, l.close(tc.killed, tc.takenOver))
		})
	}
}

func TestLedgerCountsRunsOfATick(t *testing.T) {
	l := newLedger()
	require.Equal(t, 1, l.record(at(1)))
	require.Equal(t, 1, l.record(at(2)))
	require.Equal(t, 2, l.record(at(1)))
}

func TestTickAt(t *testing.T) {
	for begin, tick := range map[float64]float64{7: 7, 7.003: 7, 7.9: 7, 6.97: 7, 6.5: 6} {
		require.Equal(t, at(tick), tickAt(at(begin)), "%v", begin)
	}
}
