package redlock

import (
	"errors"
	"slices"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A node that is near gets one batch after the other: whatever is queued while one is on its way is
// the next one, and the more callers there are, the larger batches become and the less each request
// costs. To a node that is far this would add half a round trip to each request, so there several
// batches are in flight, of different keys.

// maxAloft is how many batches are in flight at most.
const maxAloft = 4 //mutant:flight-of-one,flights-without-bound

// sendAloft sends what is queued, as far as the node is far and enough of its flights are back; and
// reports whether that is so, or some are aloft. A caller's client may spread batches over
// connections of its own, and what it does with one that is silent is not known, so it has one in
// flight.
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
		live, err := n.ready(f.taken, f)
		if len(live) == 0 {
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

// maxLook is how many requests takeFree looks at: all callers wait meanwhile.
const maxLook = 8 * maxBatch

// takeFree takes requests out of the queue whose keys are not aloft.
func (n *node) takeFree() (free []*request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	kept := n.queue[:0]
	for i, r := range n.queue {
		if len(free) == maxBatch || i == maxLook { //mutant:queue-looked-through
			kept = append(kept, n.queue[i:]...)
			break
		}
		if n.busy[r.call.Keys.Lock] > 0 { //mutant:flights-of-one-key
			kept = append(kept, r)
		} else {
			free = append(free, r)
		}
	}
	clear(n.queue[len(kept):])
	n.queue = kept
	for _, r := range free {
		n.busy[r.call.Keys.Lock]++
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

// land settles the oldest flight, which is back. Where it got no answer in time the connection is
// given up, which valkey-go does by itself only as long as that carries one batch at a time.
func (n *node) land(f *flight) {
	n.aloft = append(n.aloft[:0], n.aloft[1:]...)
	flown := f.client
	if err := n.unload(f); err != nil && (isTimeout(err) || errors.Is(err, wire.ErrOutOfStep)) {
		n.leave(flown)
	}
	n.finish(f)
	n.part()
}

// leave has the next batch sent over another connection.
func (n *node) leave(flown valkey.Client) {
	if client := n.client.Load(); client != nil && *client == flown {
		n.client.Store(nil) //mutant:flights-on-a-dead-connection
		n.parting = flown
	}
}

// part closes a client that was given up, when no flight has it any more: a connection that is made
// while its client is being closed could stay open for ever.
func (n *node) part() {
	client := n.parting
	if client == nil || slices.ContainsFunc(n.aloft, func(f *flight) bool { return f.client == client }) { //mutant:flights-on-a-closed-client
		return
	}
	n.parting = nil
	n.dials.start(client.Close)
}

// landAll waits for all flights.
func (n *node) landAll() {
	for len(n.aloft) > 0 {
		<-n.landing()
		n.land(n.aloft[0])
	}
}

// finish ends a flight whose requests have been settled: its keys are not aloft any more.
func (n *node) finish(f *flight) {
	f.limit.stop()
	for _, r := range f.taken {
		key := r.call.Keys.Lock
		if n.busy[key]--; n.busy[key] == 0 {
			delete(n.busy, key)
		}
	}
}
