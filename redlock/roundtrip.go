package redlock

import (
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
)

// roundTrip is how long a batch takes, less what the server works on it: the least of the last
// seconds, as a busy machine adds to it and nothing takes away.
type roundTrip struct {
	least, before time.Duration // of this span of time and of the one before it
	until         clock.Instant // of this span; 0 before the first batch
}

const (
	// nearTrip is a round trip within a machine or a rack, at most.
	nearTrip = 500 * time.Microsecond
	tripSpan = 5 * time.Second
	// tripWork is about what a request costs a server, or a lease in one.
	tripWork = 4 * time.Microsecond
)

func (t *roundTrip) observe(f *flight) {
	works := len(f.batch)
	for _, r := range f.batch {
		if r.convoy != nil {
			works += len(r.convoy.leases)
		}
	}
	took := max(f.received.Sub(f.sent)-time.Duration(works)*tripWork, 0)
	switch {
	case t.until == 0:
		t.least, t.before, t.until = took, took, f.received.Add(tripSpan)
	case f.received >= t.until:
		t.least, t.before, t.until = took, t.least, f.received.Add(tripSpan)
	default:
		t.least = min(t.least, took)
	}
}

// flights is how many batches may be in flight.
func (t *roundTrip) flights() int {
	return min(1+int(min(t.least, t.before)/nearTrip), maxAloft)
}
