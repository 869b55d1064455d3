// Package node talks to one server: it sends requests in order, over one connection, and knows
// whether the server may vote.
//
// It knows calls (package wire) and no leases. The receiver of an answer decides what it means, and
// what people are told.
package node

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Node is one server. Only its writer sends commands for leases to it. Commands for a key reach the
// server in the order in which they were sent, whatever connections the client underneath keeps: a
// command is sent when the one before it has been answered, or in the same batch.
//
// It is safe for concurrent use.
type Node struct {
	cfg     Config
	queue   queue
	retries retries
	gate    *gate
	work    sync.WaitGroup // looks, and clients that are being closed

	client     atomic.Pointer[valkey.Client] // nil until connected
	generation atomic.Uint64                 // of its connections: rises before a new one is made, and when one has ended

	found   chan *look    // capacity 1
	wake    chan struct{} // capacity 1
	closing chan struct{}
	stopped chan struct{}

	// Used by the writer only.
	pending []*Request // taken from the queue
	held    []*Request // requests that wait for a look
	look    *look      // under way; nil for none
	window  window
	gather  gather
	buffers wire.Buffers
	calls   []*wire.Call          // memory of those that are encoded or decoded
	results []wire.Result         // memory of those that are decoded
	knows   map[*wire.Script]bool // the scripts that the server was sent in the generation knowsIn
	knowsIn uint64
	hearing hearing
	down    error         // why the last exchange failed; nil if it did not
	since   clock.Instant // when the first one failed since one worked
	rest    clock.Instant // until then all fail for that reason, see exchanged
}

// New makes a Node, whose writer is Run.
func New(cfg Config) *Node {
	n := &Node{
		cfg:     cfg,
		wake:    make(chan struct{}, 1),
		found:   make(chan *look, 1),
		closing: make(chan struct{}),
		stopped: make(chan struct{}),
		window:  window{busy: make(map[string]int)},
		knows:   make(map[*wire.Script]bool),
	}
	n.generation.Store(1)
	n.gate = newGate(&n.cfg)
	return n
}

// Status returns whether the node votes. It does no I/O.
func (n *Node) Status() *Status { return n.gate.status.Load() }

// Send queues a request. It does not block. The answer comes on the writer's goroutine, maybe
// before Send returns. If the queue is closed or full, Send itself answers with the error. A
// release that finds the queue full is repeated later all the same.
func (n *Node) Send(r *Request) {
	if err := n.queue.put(r); err != nil {
		n.refuse(r, err)
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Close has the node take no more requests, and send those that it has taken. It does not wait, see
// Wait.
func (n *Node) Close() {
	if n.queue.close() {
		close(n.closing)
	}
}

// Wait waits until everything has been answered and the node has stopped, after a Close.
func (n *Node) Wait() { <-n.stopped }

// Run is the writer. It sends batches until the node is closed, and then what is still queued. It
// returns when all requests have been answered.
func (n *Node) Run() {
	defer close(n.stopped)
	defer n.work.Wait()
	n.startLook() // so that the first request need not wait for it
	alarm := time.NewTimer(clock.AtOnce)
	defer alarm.Stop()
	for {
		select {
		case <-n.wake:
		case <-alarm.C:
		case l := <-n.found:
			n.heed(l)
		case <-n.window.back():
			n.land()
		case <-n.closing:
		}
		if n.isClosing() {
			n.finish()
			return
		}
		if n.doDue(); !n.isClosing() {
			n.gather.yield(n.cfg.Clock)
			n.send()
			alarm.Reset(n.untilDue())
		}
	}
}

// finish sends the requests that are left, and closes the client.
func (n *Node) finish() {
	n.cancelLook()
	n.landAll()
	n.pending = append(n.pending, n.retries.take(never)...)
	n.rest = 0 // nothing is sent later
	for n.collect(); len(n.pending) > 0 || len(n.window.inFlight) > 0; n.collect() {
		n.send()
		n.landAll()
	}
	if c := n.client.Load(); c != nil {
		(*c).Close()
	}
}

// isClosing reports whether Close was called, so that nothing new is begun.
func (n *Node) isClosing() bool {
	select {
	case <-n.closing:
		return true
	default:
		return false
	}
}

// collect takes the queued requests, unless maxQueue requests are pending: those are bounded, too.
func (n *Node) collect() {
	if len(n.pending) < maxQueue {
		n.pending = n.queue.take(n.pending)
	}
}

// send sends the queued requests, as many as may be in flight.
func (n *Node) send() {
	n.collect()
	for {
		b := n.window.take(&n.pending)
		if b == nil {
			return
		}
		live, err := n.ready(b)
		switch {
		case len(live) == 0:
			n.window.finish(b)
		case n.window.trip.batches() == 1 && len(n.window.inFlight) == 0:
			n.encode(b, live)
			b.exchange(n.cfg.Clock, &n.generation)
			err = n.settle(b)
		default:
			n.encode(b, live)
			n.window.start(b, n.cfg.Clock, &n.generation)
		}
		if err != nil { // the pending requests would wait for the same node in vain
			rest := n.pending
			n.pending = nil
			for _, r := range rest {
				n.refuse(r, err)
			}
		}
	}
}

// ready returns the requests of a batch that may be sent, and answers or holds the others. An error
// means that the node cannot be reached.
func (n *Node) ready(b *batch) (live []*Request, err error) {
	b.ctx = b.limit.start(n.cfg.Timeout)
	live = n.wanted(b.requests)
	if len(live) == 0 {
		return nil, nil
	}
	if err = n.reach(b); err != nil {
		n.exchanged(err, n.cfg.Clock.Now(), false)
		for _, r := range live {
			n.refuse(r, err)
		}
		return nil, err
	}
	return n.admitted(live), nil
}

// wanted answers the requests whose attempt has ended or whose time has passed, and returns the
// others. If the attempt of an acquisition that waits has ended, a request that only joins the
// queue takes its place; but not if it was held, as the waiter may have been taken out of the queue
// meanwhile.
func (n *Node) wanted(requests []*Request) []*Request {
	now := n.cfg.Clock.Now()
	if !slices.ContainsFunc(requests, func(r *Request) bool { return now > r.Expires || r.hasEnded() }) {
		return requests
	}
	kept := requests[:0:0]
	for _, r := range requests {
		switch {
		case r.hasEnded():
			if r.Call.Op.Grants() && r.Call.Member != "" && !r.held && now <= r.Expires {
				joins := *r.Call
				joins.Op = wire.Join
				kept = append(kept, &Request{Call: &joins, Expires: r.Expires})
			}
			n.answer(r, r.unsent(ErrAbandoned))
		case now > r.Expires:
			n.answer(r, r.unsent(ErrTimeout))
		default:
			kept = append(kept, r)
		}
	}
	return kept
}

// admitted returns the requests that may be sent, answers those that may not be, and holds those
// that wait for a look at the server.
func (n *Node) admitted(requests []*Request) []*Request {
	if n.gate.open {
		return requests
	}
	kept := requests[:0:0]
	for _, r := range requests {
		switch {
		case !r.waits(), n.gate.reading && r.Call.Op.Reads():
			kept = append(kept, r)
		case len(n.held) < maxQueue && n.isLooking():
			r.held = true
			n.held = append(n.held, r)
		case !r.Call.Op.Gated():
			kept = append(kept, r)
		default:
			n.refuse(r, n.gate.status.Load().Reason())
		}
	}
	return kept
}

// connected returns the client, and makes one if there is none.
func (n *Node) connected() (valkey.Client, error) {
	if c := n.client.Load(); c != nil {
		return *c, nil
	}
	client, err := n.cfg.Connect(context.Background(), func() { n.generation.Add(1) })
	if err == nil {
		n.client.Store(&client)
	}
	return client, err
}

// land settles the oldest batch in flight, which is back.
func (n *Node) land() { _ = n.settle(n.window.pop()) }

// landAll waits for all batches in flight.
func (n *Node) landAll() {
	for len(n.window.inFlight) > 0 {
		<-n.window.back()
		n.land()
	}
}

// leave gives a client up: the next batch is sent over another connection. The client is closed
// once the batches in flight are back.
func (n *Node) leave(client valkey.Client) {
	if c := n.client.Load(); c != nil && *c == client {
		n.client.Store(nil)
		inFlight := slices.Clone(n.window.inFlight)
		n.work.Go(func() {
			for _, b := range inFlight {
				<-b.back
			}
			client.Close()
		})
	}
}

// doDue does what is due without a request: it sends failed releases again, and looks at the
// server. It asks a server that votes for its clock.
func (n *Node) doDue() {
	now, g := n.cfg.Clock.Now(), n.gate
	if n.retries.due() <= now {
		n.pending = append(n.pending, n.retries.take(now)...)
	}
	if n.look == nil && g.lookAt <= now {
		if g.open && g.answered >= g.looked && !n.cfg.Counts() {
			g.shut() // the look has the server join again; a server that is silent joins when it is back
		}
		if g.open {
			g.lookAt, g.looked = now.Add(g.cfg.LookEvery), now
			n.cfg.Observer.Due()
			if g.accused { // the Observer may have sent an Enroll a moment before
				n.probe(wire.Enroll)
			}
		}
		n.startLook()
	}
	if n.hearing.due() <= now {
		n.hearing.trialAt = now.Add(recheckEvery)
		n.probe(wire.Enroll)
	}
	if g.open && g.sampleAt <= now && n.look == nil { // a look tells the time, too
		g.sampleAt = now.Add(g.cfg.SampleEvery)
		n.probe(wire.Time)
	}
}

// untilDue returns the time until doDue has something to do, an hour at most.
func (n *Node) untilDue() time.Duration {
	const longest = time.Hour
	now := n.cfg.Clock.Now()
	at := min(now.Add(longest), n.retries.due(), n.hearing.due())
	if n.look == nil {
		if at = min(at, n.gate.lookAt); n.gate.open {
			at = min(at, n.gate.sampleAt)
		}
	}
	return max(at.Sub(now), clock.AtOnce)
}

// never is later than everything.
const never clock.Instant = 1<<63 - 1

// probe queues a question to the server about itself, for the gate.
func (n *Node) probe(op wire.Op) {
	n.pending = append(n.pending, &Request{Call: n.cfg.probe(op), Expires: n.cfg.Clock.Now().Add(n.cfg.Timeout)})
}
