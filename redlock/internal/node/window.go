package node

import (
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
)

// A near node gets one batch after the other. The requests that are queued while a batch is on its
// way are the next batch. So the more callers there are, the larger batches become, and the less
// each request costs. For a far node this would add half a round trip to each request, so several
// batches are in flight to it, of different keys.

// maxInFlight bounds the batches in flight.
const maxInFlight = 4

// window has the batches in flight.
type window struct {
	inFlight []*batch
	busy     map[string]int // how many requests for a key are in flight
	trip     roundTrip
	alone    batch // the batch of a near node, used again and again
}

// maxLook bounds how many requests take looks at, because batches that are back wait meanwhile.
const maxLook = 8 * maxBatch

// take takes the next batch out of requests, of keys that are not in flight. It returns nil if
// there is no such request, or no room in flight.
func (w *window) take(requests *[]*Request) *batch {
	most := w.trip.batches()
	if len(*requests) == 0 || len(w.inFlight) >= most {
		return nil
	}
	b := &w.alone
	if most > 1 {
		b = &batch{}
	}
	b.requests = b.memory[:0]
	kept := (*requests)[:0]
	for i, r := range *requests {
		if len(b.requests) == maxBatch || i == maxLook {
			kept = append(kept, (*requests)[i:]...)
			break
		}
		if w.busy[r.Call.Keys.Lock] > 0 {
			kept = append(kept, r)
		} else {
			b.requests = append(b.requests, r)
		}
	}
	clear((*requests)[len(kept):])
	*requests = kept
	switch b.memory = b.requests; {
	case len(b.requests) == 0:
		return nil
	case most == 1:
		return b
	}
	b.keys = make([]string, len(b.requests))
	for i, r := range b.requests {
		b.keys[i] = r.Call.Keys.Lock
		w.busy[b.keys[i]]++
	}
	return b
}

// back is closed when the oldest batch is back; nil while none is in flight.
func (w *window) back() <-chan struct{} {
	if len(w.inFlight) == 0 {
		return nil
	}
	return w.inFlight[0].back
}

// start sends a batch on a goroutine of its own, which closes back when the answers have come.
func (w *window) start(b *batch, c *clock.Clock, generation *atomic.Uint64) {
	b.back = make(chan struct{})
	w.inFlight = append(w.inFlight, b)
	go func() {
		defer close(b.back)
		b.exchange(c, generation)
	}()
}

// pop returns the oldest batch, which is back.
func (w *window) pop() *batch {
	b := w.inFlight[0]
	w.inFlight = append(w.inFlight[:0], w.inFlight[1:]...)
	return b
}

// finish ends a batch that has been settled: its keys are no longer in flight.
func (w *window) finish(b *batch) {
	b.limit.stop()
	for _, key := range b.keys {
		if w.busy[key]--; w.busy[key] == 0 {
			delete(w.busy, key)
		}
	}
	clear(b.memory)
}

// roundTrip measures how long a batch takes, less the server's work on it. It is the least of the
// last seconds, because a busy machine only makes a batch slower.
type roundTrip struct {
	least, before time.Duration // the least of this span of time, and that of the span before it
	until         clock.Instant // the end of this span; 0 before the first batch
}

const (
	// nearTrip is the longest round trip within a machine or a rack.
	nearTrip = 500 * time.Microsecond
	tripSpan = 5 * time.Second
	// tripWork is about the time that a lease costs a server.
	tripWork = 4 * time.Microsecond
)

func (t *roundTrip) observe(took time.Duration, received clock.Instant, leases int) {
	took = max(took-time.Duration(leases)*tripWork, 0)
	switch {
	case t.until == 0:
		t.least, t.before, t.until = took, took, received.Add(tripSpan)
	case received >= t.until:
		t.least, t.before, t.until = took, t.least, received.Add(tripSpan)
	default:
		t.least = min(t.least, took)
	}
}

// batches returns how many batches may be in flight.
func (t *roundTrip) batches() int {
	return min(1+int(min(t.least, t.before)/nearTrip), maxInFlight)
}
