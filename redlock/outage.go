package redlock

import (
	"context"
	"sync"

	"github.com/tenure-dev/tenure/internal/clock"
)

// outage is for how long an acquisition that waits has not reached a quorum. It says so when that
// is a TTL, and again as a reminder does. Those that wait for other keys meanwhile do not repeat
// it: see outages.
type outage struct {
	since    clock.Instant // 0 while a quorum answers
	reminder reminder      // from when it was said, or left to another
	said     bool          // by this acquisition
}

// outages keeps the acquisitions of a Quorum from saying the same.
type outages struct {
	mu   sync.Mutex
	next clock.Instant // guarded by mu; when the next line may be written
}

// take reports whether a line may be written now.
func (o *outages) take(now clock.Instant) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now < o.next {
		return false
	}
	o.next = now.Add(firstReminder / 2) // those that began with this one are not in time for the next line either
	return true
}

// lasts notes that no quorum has answered.
func (o *outage) lasts(ctx context.Context, a *acquisition, err error) {
	now := a.q.clock.Now()
	if o.since == 0 {
		o.since = now
	}
	switch {
	case now < o.since.Add(a.cfg.ttl):
		return
	case o.reminder.since == 0:
		o.reminder.begin(now)
	case !o.reminder.due(now):
		return
	}
	if a.q.outages.take(now) {
		o.said = true
		lasts := reminder{since: o.since}
		a.q.lines.foreign(a.keys.Name, func() {
			a.q.cfg.logger.WarnContext(ctx, "redlock: no quorum to acquire a key that is waited for",
				"key", a.keys.Name, "for", lasts.lasted(now), "error", err)
		})
	}
}

// ends notes that a quorum has answered.
func (o *outage) ends(ctx context.Context, a *acquisition) {
	if o.said {
		lasted := reminder{since: o.since}
		a.q.lines.foreign(a.keys.Name, func() {
			a.q.cfg.logger.InfoContext(ctx, "redlock: a quorum answers again", "key", a.keys.Name, "after", lasted.lasted(a.q.clock.Now()))
		})
	}
	*o = outage{}
}
