//go:build !linux

package history

import "time"

// Now reads the wall clock, which processes share on every system. The wall clock steps, so only
// tests that tolerate steps use it.
func Now() Instant { return Instant(time.Now().UnixNano()) }
