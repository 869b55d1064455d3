//go:build !linux && !js

package clock

import "time"

// newWitness takes every forward move of the wall clock against the monotonic one for suspend. That
// errs on the safe side: a wall clock stepped forward ends leases early, and one stepped backward
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
