package history

import "time"

// Instant is a point on a clock that all processes of this machine share, that never steps and that
// counts while the machine is suspended: nanoseconds since it was booted. Zero is never.
type Instant int64

// Add returns the instant d after i.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

func (i Instant) String() string { return time.Duration(i).String() }
