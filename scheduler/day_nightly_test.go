//go:build nightly

package scheduler_test

import (
	"fmt"
	"os"
	"testing"
)

// TestADay for three spans of a day. Of the seeds, each finds faults that the other does not.
// TENURE_DAY=whole has the service on all day, which takes some half an hour of a core.
func TestDays(t *testing.T) {
	for _, seed := range []uint64{31, 11} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			judgeDay(t, seed, func(d *aDay) {
				if os.Getenv("TENURE_DAY") == "whole" {
					d.on = []daySpan{{from: day(1, 0, 0, 5), to: day(1, 23, 58, 0)}}
				}
			})
		})
	}
}

// All policies of TestClockAheadThatIsSetRight in all modes.
func TestDaysWithAClockAhead(t *testing.T) {
	for _, mode := range []string{"elected", "a standby that leads later"} {
		for _, p := range policies {
			clockAheadThatIsSetRight(t, mode, p)
		}
	}
}
