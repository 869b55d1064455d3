//go:build nightly

package scheduler_test

import "testing"

// All policies of TestClockAheadThatIsSetRight in all modes.
func TestClockAheadInAllModes(t *testing.T) {
	for _, mode := range []string{"elected", "a standby that leads later"} {
		for _, p := range policies {
			clockAheadThatIsSetRight(t, mode, p)
		}
	}
}
