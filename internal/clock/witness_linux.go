package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// newWitness reads suspended time from CLOCK_BOOTTIME, which counts it where CLOCK_MONOTONIC does
// not (clock_gettime(2)).
func newWitness() func(mono, moved time.Duration) time.Duration {
	base, ok := boottime()
	return func(mono, _ time.Duration) time.Duration {
		now, okNow := boottime()
		if !ok || !okNow {
			return 0
		}
		return now - base - mono
	}
}

func boottime() (time.Duration, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
