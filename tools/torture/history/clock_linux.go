package history

import "golang.org/x/sys/unix"

// Now reads CLOCK_BOOTTIME, see clock_gettime(2).
func Now() Instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("history: no boot clock: " + err.Error()) // Linux has had it since 2.6.39
	}
	return Instant(ts.Nano())
}
