package clock

import "time"

const (
	// grain is how coarse JavaScript's clocks are, the one against the other: Date counts in whole
	// milliseconds, and browsers coarsen performance.now on purpose
	// (https://www.w3.org/TR/hr-time-3/#clock-resolution). Moves up to that are no moves.
	grain = 5 * time.Millisecond
	// blip is within which time a move back is made good. time.Now asks JavaScript for the wall
	// clock first and for the monotonic one then, so a pause between the two sets the wall clock
	// back for that one reading.
	blip = time.Second
)

// newWitness takes forward moves of the wall clock against the monotonic one for suspend, as
// elsewhere without a better witness. Whether performance.now goes on while the machine is
// suspended depends on the browser and its system. What only makes good a move back, or is within
// the grain of the clocks, does not count: those moves come all the time, and would add up.
func newWitness() func(mono, moved time.Duration) time.Duration {
	var suspended, back, backAt time.Duration
	return func(mono, moved time.Duration) time.Duration {
		if mono-backAt > blip {
			back = 0
		}
		if moved < 0 {
			back, backAt = back-moved, mono
			return suspended
		}
		good := min(back, moved)
		back -= good
		if moved -= good; moved > grain {
			suspended += moved
		}
		return suspended
	}
}
