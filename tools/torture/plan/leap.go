package plan

import (
	"cmp"
	"slices"
	"time"
)

// Leap is a moment in which a clock leaps.
type Leap struct {
	At time.Duration `json:"at"` // from the start
	By time.Duration `json:"by"` // back if it is negative
}

// maxLeap is by how much a clock leaps at most.
const maxLeap = 1500 * ms

// Clock returns by how much a client's clock is ahead, and when it leaps: forward or back, and some
// seconds later the other way. That of the first client is ahead by most, that of the second behind
// by as much; where clocks leap, these are set right for good in the middle of the run.
func Clock(seed uint64, t Topology, client int, duration time.Duration) (ahead time.Duration, leaps []Leap) {
	d := NewDice(seed, 0x1ea9+uint64(client))
	ahead = d.Between(-t.Ahead, t.Ahead)
	if client < 2 {
		ahead = []time.Duration{t.Ahead, -t.Ahead}[client]
	}
	if !t.Leaps {
		return ahead, nil
	}
	for now := d.Between(quiet, 30*time.Second); now < duration; now += d.Between(15*time.Second, 45*time.Second) {
		by := d.Between(maxLeap/5, maxLeap)
		if d.IntN(2) == 0 {
			by = -by
		}
		leaps = append(leaps, Leap{now, by})
		now += d.Between(time.Second, 6*time.Second)
		leaps = append(leaps, Leap{now, -by})
	}
	if client < 2 {
		leaps = append(leaps, Leap{duration / 2, -ahead})
		slices.SortFunc(leaps, func(a, b Leap) int { return cmp.Compare(a.At, b.At) })
	}
	return ahead, leaps
}
