package redlock

import (
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
)

// reminder is when something that lasts is logged again: a minute after it began, two minutes
// later, four, and so on, and then once an hour.
type reminder struct {
	since clock.Instant // when it began
	next  clock.Instant // when it is logged again
	pause time.Duration // before that
	said  bool          // it has begun
}

const (
	firstReminder  = time.Minute
	rarestReminder = time.Hour
)

// begin is called when the beginning is logged.
func (r *reminder) begin(now clock.Instant) {
	*r = reminder{since: now, next: now.Add(firstReminder), pause: firstReminder, said: true}
}

// due reports whether to log it again.
func (r *reminder) due(now clock.Instant) bool {
	if now < r.next {
		return false
	}
	r.pause = min(2*r.pause, rarestReminder)
	r.next = now.Add(r.pause)
	return true
}

// lasted is for how long it has been so, in whole seconds from the first one on.
func (r *reminder) lasted(now clock.Instant) time.Duration {
	d := now.Sub(r.since)
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}
