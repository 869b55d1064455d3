package clock

import "time"

const (
	// grain is how far JavaScript's two clocks move apart by their resolution alone: Date counts
	// whole milliseconds, and browsers coarsen performance.now on purpose
	// (https://www.w3.org/TR/hr-time-3/#clock-resolution). A move up to grain is ignored.
	grain = 5 * time.Millisecond
	// blip is how long after a move back a move forward may undo it. time.Now asks JavaScript for
	// the wall clock first and for the monotonic one then, so a pause between the two sets the wall
	// clock back for that one reading.
	blip = time.Second
)

// newWitness counts forward moves of the wall clock against the monotonic one as suspend, as on
// other systems without a better witness. Whether performance.now goes on while the machine is
// suspended depends on the browser and its system. A move that undoes a move back does not count,
// nor does a move within the grain of the clocks: such moves are frequent, and would add up.
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
