package clock

import "time"

// grain is how coarse JavaScript's clocks are, the one against the other: Date counts in whole
// milliseconds, and browsers coarsen performance.now on purpose
// (https://www.w3.org/TR/hr-time-3/#clock-resolution). Moves up to that are no moves.
const grain = 5 * time.Millisecond

// newWitness takes every forward move of the wall clock against the monotonic one for suspend, as
// elsewhere without a better witness, unless it is within the grain of the clocks: those moves go
// forth and back all the time, and would add up. Whether performance.now goes on while the machine
// is suspended depends on the browser and its system.
func newWitness() func(mono, moved time.Duration) time.Duration {
	var suspended time.Duration
	return func(_, moved time.Duration) time.Duration {
		if moved > grain {
			suspended += moved
		}
		return suspended
	}
}
