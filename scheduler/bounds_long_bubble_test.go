//go:build long

package scheduler_test

import (
	"testing"

	"github.com/tenure-dev/tenure/scheduler"
)

// Of more missed ticks than are caught up the last ones are run, once each, and people are told.
func TestMoreMissedTicksThanAreCaughtUp(t *testing.T) {
	for _, more := range []int{0, 50} {
		alone(t, func(t *testing.T, c *cluster) { missedTicks(t, c, scheduler.MaxCatchUp+more) })
	}
}
