//go:build !linux && !js

package clock

import "time"

// newWitness counts every forward move of the wall clock against the monotonic one as suspend. That
// errs on the safe side: a step forward of the wall clock ends leases early, and a step backward
// changes nothing.
func newWitness() func(mono, moved time.Duration) time.Duration {
	var suspended time.Duration
	return func(_, moved time.Duration) time.Duration {
		if moved > 0 {
			suspended += moved
		}
		return suspended
	}
}
