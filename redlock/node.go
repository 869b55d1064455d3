package redlock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

const (
	// maxBatch bounds what one write to a node carries. valkey-go moves a pipeline of 2,000
	// commands or more to another connection (ClientOption.BlockingPipeline, which a caller's
	// client may have), which would break the order.
	maxBatch = 512
	// maxQueue bounds the requests that wait for a node, and separately the releases that it still
	// owes.
	maxQueue = 1 << 16
)

// node is one master. Its run goroutine is the only one that sends commands for leases to it.
// Commands for a key reach the server in the order in which they were queued, whatever connections
// the client underneath keeps: one is sent when the one before it has been answered, or in the same
// batch. How many batches are in flight at a time is in flight.go.
type node struct {
	q       *Quorum
	index   int
	addr    string                        // host:port, for people
	connect func() (valkey.Client, error) // nil when the client is the caller's
	client  atomic.Pointer[valkey.Client] // nil until connected
	timeout time.Duration                 // for a batch, after which the connection is given up, unless it is a caller's
	gate    *gate
	dials   dials
	looking dedication // the gate's, and a visit's
	hearing dedication // the listener's

	visited chan *visit   // capacity 1
	wake    chan struct{} // capacity 1
	closing chan struct{}
	stopped chan struct{}

	mu     sync.Mutex
	queue  []*request    // guarded by mu
	spare  []*request    // guarded by mu; the queue's other buffer
	owed   []*request    // guarded by mu; releases that failed and are to be tried again, see owed.go
	owedAt clock.Instant // guarded by mu; when; 0 while none are owed
	closed bool          // guarded by mu

	// Used by run only.
	near    flight         // of batches of which one is in flight at a time
	aloft   []*flight      // those of several, the oldest first
	parting valkey.Client  // given up, but not closed because some of those still have it; or nil
	busy    map[string]int // how many requests for a key are aloft
	trip    roundTrip      // to the server and back
	echoes  wire.Echoes

	visiting  bool          // a visit is under way
	visitErr  error         // why the last one failed
	endEarly  func()        // ends it
	compareAt clock.Instant // when to ask the connection in use which process it leads to; or never
	astray    bool          // to another than new connections
	buffers   wire.Buffers
	calls     []*wire.Call  // buffer
	found     []wire.Result // buffer

	damage    damage
	unheard   atomic.Pointer[ConditionError] // why it cannot call waiters of this process; set by the listener
	unvisited atomic.Pointer[ConditionError] // why it refuses new connections; set by visits

	ahead atomic.Int64 // how much the server's wall clock is ahead of this process's, in nanoseconds; set by run

	// Set by run, through report and reportLook.
	trouble     atomic.Pointer[NodeError] // why the last exchange failed; nil after one that worked
	lookTrouble atomic.Pointer[NodeError] // why the last look of the gate failed; nil after one that worked

	server    atomic.Pointer[string] // who answered the last look: behind a Sentinel this is the master of that time
	answered  atomic.Bool            // the server has, whatever
	encrypted bool                   // with TLS; false for a caller's client

	cut    bool     // the last exchange failed; used by run only
	outage reminder // while it fails; used by run only
}

// send queues a request. It does not block: a request that finds the queue full fails, and a
// release is then owed.
func (n *node) send(r *request) {
	var stale []*request
	var err error
	n.mu.Lock()
	if len(n.queue) >= maxQueue {
		stale = n.sweep()
	}
	switch {
	case n.closed:
		err = ErrClosed
	case len(n.queue) >= maxQueue: //mutant:queue-unbounded
		err = errOverloaded
	default: //mutant:release-overtakes
		n.queue = append(n.queue, r)
	}
	n.mu.Unlock()
	for _, s := range stale {
		n.settle(s, reply{Answer: wire.Answer{Verdict: wire.Failed}, err: n.failure(s.op(), ErrTimeout)})
	}
	switch err {
	case nil:
	case errOverloaded:
		n.fail(r, err)
	default:
		n.settle(r, reply{Answer: wire.Answer{Verdict: wire.Failed}, err: n.failure(r.op(), err)})
	}
	n.signal()
}

func (n *node) signal() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// sweep removes and returns requests that are too old to be sent. Called with mu held.
func (n *node) sweep() (stale []*request) {
	now := n.q.clock.Now()
	kept := n.queue[:0]
	for _, r := range n.queue {
		if now <= r.expires {
			kept = append(kept, r)
		} else {
			stale = append(stale, r)
		}
	}
	clear(n.queue[len(kept):])
	n.queue = kept
	return stale
}

// take empties the queue.
func (n *node) take() []*request {
	n.mu.Lock()
	defer n.mu.Unlock()
	batch := n.queue
	n.queue, n.spare = n.spare[:0], nil
	return batch
}

func (n *node) recycle(batch []*request) {
	clear(batch)
	n.mu.Lock()
	n.spare = batch[:0]
	n.mu.Unlock()
}

// run sends batches until the node is closed, and then once more what is still queued.
func (n *node) run() {
	defer close(n.stopped)
	defer n.awaitDials()
	defer n.cancelVisit()
	n.prepare()
	alarm := time.NewTimer(atOnce)
	defer alarm.Stop()
	for {
		select {
		case <-n.wake:
		case <-alarm.C:
		case v := <-n.visited:
			n.endVisit(v)
		case <-n.landing():
			n.land(n.aloft[0])
		case <-n.closing:
		}
		select {
		case <-n.closing:
			n.landAll()
			n.requeueOwed()
			for n.sendAll(); len(n.aloft) > 0; n.sendAll() { //mutant:release-dropped-by-close,flights-left-behind
				n.landAll()
			}
			n.disconnect()
			return
		default:
		}
		n.doDue()
		select {
		case <-n.closing:
			continue
		default:
		}
		n.sendAll()
		alarm.Reset(n.untilDue())
	}
}

// sendAll sends what is queued, or as much of it as may be in flight.
func (n *node) sendAll() {
	if n.sendAloft() {
		return
	}
	batch := n.take()
	for rest := batch; len(rest) > 0; {
		size := min(len(rest), maxBatch)
		err := n.sendBatch(rest[:size], &n.near)
		rest = rest[size:]
		if err != nil {
			// The rest would wait for the same node in vain.
			for _, r := range rest {
				n.fail(r, err)
			}
			break
		}
	}
	n.recycle(batch)
}

// sendBatch sends what is still wanted of a batch and settles every request in it. It returns an
// error if the node did not answer.
func (n *node) sendBatch(batch []*request, f *flight) error {
	defer f.limit.stop()
	live, err := n.ready(batch, f)
	if len(live) == 0 {
		return err
	}
	flown := f.client
	err = n.deliver(f, live)
	if n.connect != nil && errors.Is(err, wire.ErrOutOfStep) { // a caller closes its own
		n.leave(flown)
		n.part()
	}
	return err
}

// ready returns what may be sent of a batch, and settles the rest. An error means that the node
// cannot be reached.
func (n *node) ready(batch []*request, f *flight) (live []*request, err error) {
	f.ctx = f.limit.start(n.timeout) //mutant:write-unbounded/2
	live = n.wanted(batch, true)
	if len(live) == 0 {
		return nil, nil
	}
	if f.client, err = n.connected(); err != nil {
		n.report(connectionError(err))
		for _, r := range live {
			n.fail(r, err)
		}
		return nil, err
	}
	return n.gate.admit(f.ctx, f.client, live), nil
}

// wanted settles the requests whose attempt has ended or whose time has passed, and returns the
// others. With join, those that wait go on as what joins the queue; later that could follow what
// has left it.
func (n *node) wanted(batch []*request, join bool) []*request {
	now := n.q.clock.Now()
	if !slices.ContainsFunc(batch, func(r *request) bool { return now > r.expires || r.hasEnded() }) {
		return batch
	}
	kept := batch[:0:0]
	for _, r := range batch {
		switch {
		case r.hasEnded(): //mutant:ended-attempt-still-sent
			err := errAbandoned
			if r.alone { //mutant:packet-forgotten-halfway
				err = errPartly
			}
			n.settle(r, reply{Answer: wire.Answer{Verdict: wire.Failed}, err: n.failure(r.op(), err)})
			if join && r.call.Op == wire.Acquire && r.call.Member != "" && now <= r.expires { //mutant:busy-node-not-joined
				kept = append(kept, &request{call: r.attempt.call(wire.Join), attempt: r.attempt, expires: r.expires})
			}
		case now > r.expires: //mutant:stale-request-sent
			n.settle(r, reply{Answer: wire.Answer{Verdict: wire.Failed}, err: n.failure(r.op(), ErrTimeout)})
		default:
			kept = append(kept, r)
		}
	}
	return kept
}

// prepare connects, loads the scripts and vouches for the server, so that the first request need
// not wait for that.
func (n *node) prepare() {
	ctx, cancel := context.WithTimeout(context.Background(), n.timeout)
	defer cancel()
	client, err := n.connected()
	if err != nil {
		n.reportLook(connectionError(n.gate.failed(err)))
		return
	}
	scripts := wire.Ungated
	if !n.q.cfg.restartGate {
		scripts = append(slices.Clone(scripts), wire.AnyProcess.Scripts()...)
	}
	loads := make(valkey.Commands, len(scripts))
	for i, s := range scripts {
		loads[i] = wire.LoadCommand(client, s)
	}
	for _, result := range client.DoMulti(ctx, loads...) {
		if e := result.NonValkeyError(); e != nil {
			err = e
		}
	}
	if err == nil {
		err = n.gate.vouch(ctx, client)
	} else {
		err = n.gate.failed(err)
	}
	n.reportLook(connectionError(err))
}

func (n *node) connected() (valkey.Client, error) {
	if c := n.client.Load(); c != nil {
		return *c, nil
	}
	client, err := n.connect()
	if client == nil {
		if err == nil {
			err = errors.New("no client")
		}
		return nil, err
	}
	// A client that could not dial yet comes with an error and dials again with its next command.
	n.client.Store(&client)
	return client, err
}

// answering is the address of the server that answered the last look, or the node's.
func (n *node) answering() string {
	if server := n.server.Load(); server != nil {
		return *server
	}
	return n.addr
}

func (n *node) disconnect() {
	if c := n.client.Load(); c != nil && n.connect != nil {
		(*c).Close()
	}
}

// fail settles a request that the server did not carry out, as far as is known. A release is tried
// again until its key has expired.
func (n *node) fail(r *request, err error) {
	if r.call.Op == wire.Release { //mutant:release-not-repeated
		n.owe(r, isTimeout(err) || errors.Is(err, ErrTimeout))
	}
	n.settle(r, reply{Answer: wire.Answer{Verdict: wire.Failed}, err: n.failure(r.op(), err)})
}

func (n *node) failure(op Op, err error) *NodeError {
	if isTimeout(err) {
		err = ErrTimeout
	}
	err = diagnose(err)
	if known, ok := err.(*ConditionError); ok {
		err = known.with(n.q.cfg.prefix)
	}
	return &NodeError{Node: n.addr, Op: op, Err: n.suspect(err)}
}

// settle hands a reply to the round and to the tracer.
func (n *node) settle(r *request, rep reply) {
	if r.began != 0 {
		rep.took = n.q.clock.Now().Sub(r.began)
	}
	if t := n.q.cfg.tracers.node; t != nil && r.ctx != nil {
		data := TraceNodeEndData{Op: r.op(), Key: r.call.Keys.Name, Node: n.addr, OK: rep.Verdict == wire.OK, Duration: rep.took}
		if rep.err != nil {
			data.Err = rep.err
		}
		t.TraceNodeEnd(r.ctx, data)
		r.ctx = nil
	}
	if rep.Verdict == wire.Failed && rep.Unknown != "" {
		rep.err = n.failure(r.op(), errUnknownSequence) // for the acquisition, and not for those who trace the node, which is well
	}
	if r.call.Op.IsProbe() {
		rep.at = n.q.clock.Now()
	}
	switch {
	case r.round != nil:
		r.round.settle(r.slot, rep)
	case r.convoy != nil:
		r.convoy.settle(r, rep)
	}
}

// close stops accepting requests. Those already queued are still sent; wait for stopped.
func (n *node) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		n.closed = true
		close(n.closing)
	}
}
