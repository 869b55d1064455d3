//go:build nightly

package scheduler_test

import (
	"fmt"
	"testing"
)

// TestADay for three spans of a day, and for all of it. Of the seeds, each finds faults that the
// other does not.
func TestDays(t *testing.T) {
	for _, seed := range []uint64{31, 11} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { judgeDay(t, seed, func(*aDay) {}) })
	}
	t.Run("whole", func(t *testing.T) {
		judgeDay(t, 31, func(d *aDay) { d.on = []daySpan{{from: day(1, 0, 0, 5), to: day(1, 23, 58, 0)}} })
	})
}

// All policies of TestClockAheadThatIsSetRight in all modes.
func TestDaysWithAClockAhead(t *testing.T) {
	for _, mode := range []string{"elected", "a standby that leads later"} {
		for _, p := range policies {
			clockAheadThatIsSetRight(t, mode, p)
		}
	}
}
