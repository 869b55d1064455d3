// Package clock reads elapsed time on a clock that never steps and that keeps counting while the
// machine is suspended.
//
// A lease is a promise about elapsed time. The wall clock cannot measure it, because it steps. Go's
// monotonic clock alone cannot either: on Linux and on macOS it stands still while the machine
// sleeps, so a laptop would wake up believing in a lease that ran out an hour ago.
//
// Only a suspend that this machine itself sees is measured. A virtual machine is not told when its
// host stops it, for a snapshot or for the last step of a live migration, and the hypervisor
// decides whether its clocks go on. Such a process acts late, and only a fencing token that the
// resource checks helps.
package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// Wall is the wall clock of schedulers and fencing tokens. The torture program sets it, before it
// begins, to give processes wrong clocks.
var Wall = time.Now

// Instant is a point on a Clock, in nanoseconds since the clock was made. Instants of different
// clocks do not compare.
type Instant int64

// Add returns the instant d after i.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }

// Tolerance is how much suspended time may go unnoticed. It is below the 2 ms that every lease's
// drift allowance contains.
const Tolerance = time.Millisecond

// AtOnce is the minimum duration of a timer. A timer that is already due is run by the goroutine
// that sets it or receives from it. In a bubble of testing/synctest two timers that run at the same
// time crash the race detector, because they share its state (runtime.timer.unlockAndRun of Go
// 1.26).
const AtOnce = time.Nanosecond

// Clock measures elapsed time including suspend. Use New; a Clock is safe for concurrent use.
//
// Reading the kernel's suspend-aware clock is a system call (about 300 ns), so Now does not make it
// each time. A suspend moves the wall clock against the monotonic one, as a step of the wall clock
// does, and one cheap time.Now reads both. Only when they have moved apart by more than Tolerance,
// the kernel is asked how much of that was suspend. So a step of the wall clock costs one system
// call and changes nothing.
type Clock struct {
	base   time.Time
	now    func() time.Time
	asleep func(mono, moved time.Duration) time.Duration // suspended time since base, see newWitness

	gap       atomic.Int64 // wall minus monotonic, when last examined
	suspended atomic.Int64 // suspended time since base
	mu        sync.Mutex   // serialises examine
}

// New returns a clock that starts at zero now.
func New() *Clock { return newClock(time.Now, newWitness()) }

// newClock makes a clock over a source of time and a witness of suspended time.
func newClock(now func() time.Time, asleep func(mono, moved time.Duration) time.Duration) *Clock {
	return &Clock{base: now(), now: now, asleep: asleep}
}

// Now returns the time elapsed since the clock was made, suspend included. It does not block or
// allocate.
func (c *Clock) Now() Instant {
	t := c.now()
	mono := t.Sub(c.base)
	gap := time.Duration(t.UnixNano()-c.base.UnixNano()) - mono
	if d := gap - time.Duration(c.gap.Load()); d > Tolerance || d < -Tolerance {
		c.examine(gap)
	}
	return Instant(int64(mono) + c.suspended.Load())
}

func (c *Clock) examine(gap time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	moved := gap - time.Duration(c.gap.Load())
	if s := int64(c.asleep(c.now().Sub(c.base), moved)); s > c.suspended.Load() {
		c.suspended.Store(s)
	}
	// Stored last: a reader that sees the new gap relies on the new suspended time.
	c.gap.Store(int64(gap))
}
