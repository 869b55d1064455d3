//go:build long

package runtest

import (
	"strconv"
	"testing"
)

// Ten hosts run each tick at once, while nodes are killed, frozen and cut: one run a tick, and all
// exit codes are 0.
func TestOneRunATick(t *testing.T) {
	for i := range 3 { // a frozen node costs time, and no work
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			runTicks(t, 4)
		})
	}
}
