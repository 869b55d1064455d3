package redlock

import (
	"context"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
)

// A node that is near gets one batch after the other: whatever is queued while one is on its way is the next one, and the more callers there
// are, the larger batches become and the less each request costs. To a node that is far this would add half a round trip to each request, so there several
// batches are in flight, of different keys.

const (
	// nearTrip is a round trip within a machine or a rack, at most.
	nearTrip = 500 * time.Microsecond
	// maxAloft is how many batches are in flight at most.
	maxAloft = 4
)

// flight is a batch on its way to a node and back.
type flight struct {
	limit  timeLimit
	ctx    context.Context
	client valkey.Client
	taken  []*request    // from the queue
	done   chan struct{} // closed when it is back; nil where nobody else waits

	batch          []*request // that is sent
	second         bool       // once more
	gated          *gated     // what was open when it was loaded
	commands       valkey.Commands
	sizes          []int // how many requests each command carries
	results        []valkey.ValkeyResult
	one            [1]valkey.ValkeyResult // the results of one command
	sent, received clock.Instant
}

// fly sends what was loaded and waits for the answers.
func (f *flight) fly(c *clock.Clock) {
	f.sent = c.Now()
	if len(f.commands) == 1 {
		f.one[0] = f.client.Do(f.ctx, f.commands[0])
		f.results = f.one[:]
	} else {
		f.results = f.client.DoMulti(f.ctx, f.commands...)
	}
	f.received = c.Now()
}

// sendAloft sends what is queued, as far as the node is far and enough of its flights are back; and reports whether that is so, or some are
// aloft. A caller's client may spread batches over connections of its own, and what it does with one that is silent is not known, so it has one in flight.
func (n *node) sendAloft() bool {
	most := n.trip.flights()
	if n.connect == nil || most == 1 && len(n.aloft) == 0 {
		return false
	}
	for len(n.aloft) < most {
		f := &flight{}
		if f.taken = n.takeFree(); len(f.taken) == 0 {
			break
		}
		live, probes, err := n.ready(f.taken, f)
		if live = append(live, probes...); len(live) == 0 {
			n.finish(f)
			if err != nil {
				n.failQueued(err)
			}
			continue
		}
		n.load(f, live, false)
		f.done = make(chan struct{})
		n.aloft = append(n.aloft, f)
		go func() {
			defer close(f.done)
			f.fly(n.q.clock)
		}()
	}
	return true
}

// takeFree takes requests out of the queue whose keys are not aloft: those that ask the server about itself, or others. It looks at as many as are
// worth it, for all callers wait meanwhile.
func (n *node) takeFree() (free []*request) {
	const look = 8 * maxBatch
	n.mu.Lock()
	defer n.mu.Unlock()
	kept := n.queue[:0]
	for i, r := range n.queue {
		if len(free) == maxBatch || i == look {
			kept = append(kept, n.queue[i:]...)
			break
		}
		if n.busy[r.attempt.keys.lock] > 0 || len(free) > 0 && r.isProbe() != free[0].isProbe() {
			kept = append(kept, r)
		} else {
			free = append(free, r)
		}
	}
	clear(n.queue[len(kept):])
	n.queue = kept
	for _, r := range free {
		n.busy[r.attempt.keys.lock]++
	}
	return free
}

// failQueued fails what would wait for the node in vain.
func (n *node) failQueued(err error) {
	batch := n.take()
	for _, r := range batch {
		n.fail(r, err)
	}
	n.recycle(batch)
}

// landing is closed when the oldest flight is back; nil while none is aloft.
func (n *node) landing() <-chan struct{} {
	if len(n.aloft) == 0 {
		return nil
	}
	return n.aloft[0].done
}

// land settles the oldest flight, which is back. Where it got no answer in time the connection is given up, which valkey-go does by itself only as long as
// that carries one batch at a time.
func (n *node) land(f *flight) {
	n.aloft = append(n.aloft[:0], n.aloft[1:]...)
	flown := f.client
	err := n.unload(f)
	if client := n.client.Load(); err != nil && isTimeout(err) && client != nil && *client == flown {
		n.client.Store(nil)
		n.dials.Go(flown.Close)
	}
	n.finish(f)
}

// landAll waits for all flights.
func (n *node) landAll() {
	for len(n.aloft) > 0 {
		<-n.landing()
		n.land(n.aloft[0])
	}
}

func (n *node) finish(f *flight) {
	f.limit.stop()
	for _, r := range f.taken {
		key := r.attempt.keys.lock
		if n.busy[key]--; n.busy[key] == 0 {
			delete(n.busy, key)
		}
	}
}

// roundTrip is how long a batch takes, less what the server works on it: the least of the last seconds, as a busy machine adds to it and nothing takes
// away.
type roundTrip struct {
	least, before time.Duration // of this span of time and of the one before it
	until         clock.Instant // of this span; 0 before the first batch
}

const (
	tripSpan = 5 * time.Second
	// tripWork is about what a request costs a server.
	tripWork = 4 * time.Microsecond
)

func (t *roundTrip) observe(f *flight) {
	took := max(f.received.Sub(f.sent)-time.Duration(len(f.batch))*tripWork, 0)
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
