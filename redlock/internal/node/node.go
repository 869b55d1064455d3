// Package node talks to one server: it sends what is asked of the server in order, over one
// connection, and knows whether the server may vote.
//
// It knows of calls (package wire) and not of leases: what an answer means is its receiver's
// matter, and so is what people are told.
package node

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

// Errors of requests that the server has not carried out, as far as is known. Others are a
// *wire.Fault, or as the client or the server gave them.
var (
	// ErrClosed: the node was closed.
	ErrClosed = errors.New("node closed")
	// ErrTimeout: it took too long, or could not be sent in time.
	ErrTimeout = errors.New("timed out")
	// ErrOverloaded: the node's queue is full.
	ErrOverloaded = errors.New("too many requests are waiting for this node")
	// ErrAbandoned: the attempt ended before the request was sent, or sent again.
	ErrAbandoned = errors.New("abandoned before it was sent")
)

// Config is what a Node is made of. All of it is needed.
type Config struct {
	// Connect makes a client that is connected, and ends with the context, see NewClient. changed
	// may be nil.
	Connect func(ctx context.Context, changed func()) (valkey.Client, error)
	Timeout time.Duration // of an exchange, after which the connection is given up
	Clock   *clock.Clock
	Keys    *wire.Keys // of questions to the server about itself
	Channel string     // of the same, see wire.Call

	RestartGate    bool                 // a server process votes when it was vouched for
	AcceptReplicas bool                 // a master may have replicas, or have been one
	Quarantine     func() time.Duration // how long a process must have been up before it votes
	Longer         func() string        // why that is longer than this process needs, for people; empty if it is not
	Absence        time.Duration        // after how long without an answer a server is looked at before it votes again
	Drift          float64              // of two clocks, as a fraction
	SampleEvery    time.Duration        // how often at least the server's clock is looked at
	LookEvery      time.Duration        // how often a server that votes is looked at

	// Join has the process vote that may, for all that its own server can say, and returns why it
	// may not, and when to try again. It may take a while; it ends with ctx. The run_id is empty
	// where the server does not tell it, and age is what counts for the quarantine.
	Join func(ctx context.Context, runID string, age time.Duration) (retry time.Duration, err error)
	// Counts reports whether it still counts for which Join was called last. It does not block.
	Counts   func() bool
	Observer Observer
}

// probe is a question to the server about itself.
func (c *Config) probe(op wire.Op) *wire.Call {
	return &wire.Call{Op: op, Keys: c.Keys, Channel: c.Channel}
}

// Observer hears of what a node finds out about its server. Its methods are called by the node's
// writer, one after the other, and must not block.
type Observer interface {
	Exchanged(err error)                   // how an exchange went: why the server did not answer, or nil
	Looked(err error)                      // how a look at the server went, likewise
	Refused(err error)                     // why no new connection to a server that votes can be had, or nil; with each look
	Status(was, is *Status)                // it is set, not always to another
	Sampled(server Watch, d time.Duration) // the server's clock was looked at, and has jumped by that since; zero as a rule
	Elsewhere()                            // another server answers at the address than over the connection in use
	Due() (writes bool)                    // a server that votes is looked at, as it is from time to time; whether it is sent a script that may write
}

// Request is one call to one node. It is the node's from Send until its answer, and its call is not
// changed meanwhile; what the node keeps for longer is a copy.
type Request struct {
	Call    *wire.Call
	To      Sink          // gets the answer; may be nil
	Slot    int           // the receiver's
	Expires clock.Instant // it is not sent after this
	TTL     time.Duration // of a release: for how long it is repeated while the node does not answer
	Ended   *atomic.Bool  // once it is true nothing but a release or a leave is sent; nil for never

	alone   bool          // was sent together with others, and is to be sent by itself
	resent  bool          // was sent once more because the connection had broken
	unknown bool          // the server does not know the script
	pause   time.Duration // before the next try of a release that failed
}

// hasEnded reports whether the attempt has ended that the request would go on with.
func (r *Request) hasEnded() bool {
	return r.Ended != nil && r.Call.Op.OfAttempt() && r.Ended.Load()
}

// waits reports whether the request waits for a look that is under way while the node does not
// vote: if it is only for a server that was vouched for, or a question of somebody who wants to
// know.
func (r *Request) waits() bool { return r.Call.Op.Gated() || r.Call.Op.IsProbe() && r.To != nil }

// Answer is what came of a request.
type Answer struct {
	wire.Answer

	Err      error         // why there is none
	Unsent   bool          // with an error: the server has not carried it out
	Sent     clock.Instant // when it was written, just before; 0 if it was not
	Received clock.Instant // when the server had answered; 0 if it did not
}

// NotTaken is the answer to a request that Send has not taken.
func NotTaken(err error) Answer {
	return Answer{Answer: wire.Answer{Verdict: wire.Failed}, Err: err, Unsent: true}
}

func failed(err error) Answer {
	return Answer{Answer: wire.Answer{Verdict: wire.Failed}, Err: timely(err)}
}

// timely gives a timeout its name. What was not sent at all is no server's error to look into: as
// many requests are as there are nodes that a lease did not need.
func timely(err error) error {
	switch {
	case err == ErrAbandoned || err == ErrTimeout:
		return err
	case wire.IsTimeout(err):
		return ErrTimeout
	default:
		return wire.Diagnose(err)
	}
}

// Sink gets the answers of requests: one for each that was taken, on the writer's goroutine, with
// no lock held. It does not block, and may Send.
type Sink interface{ Answered(r *Request, a Answer) }

// Node is one server. Its writer is the only one that sends it commands for leases. Commands for a
// key reach the server in the order in which they were sent, whatever connections the client
// underneath keeps: one is sent when the one before it has been answered, or in the same batch.
//
// It is safe for concurrent use.
type Node struct {
	cfg     Config
	queue   queue
	retries retries
	gate    *gate
	work    sync.WaitGroup // looks, and connections on their way to their end

	client     atomic.Pointer[valkey.Client] // nil until connected
	generation atomic.Uint64                 // of its connections: rises before there is another one, and when one has ended
	ahead      atomic.Int64                  // how much the server's wall clock is ahead of this process's, in nanoseconds

	found   chan *look    // capacity 1
	wake    chan struct{} // capacity 1
	closing chan struct{}
	stopped chan struct{}

	// Used by the writer only.
	pending []*Request // taken from the queue
	buffer  []*Request // that pending is a part of
	held    []*Request // that wait for a look
	look    *look      // under way; nil for none
	window  window
	gather  gather
	encoder encoder
	knows   map[*wire.Script]bool // what the server was sent, in the generation
	knowsIn uint64
	hearing hearing
	several bool            // the connection has carried more than one batch at a time
	parting []valkey.Client // given up, but not closed because some batches still have them
}

// New makes a node, which begins with Run.
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

// Status is whether the node votes. It does no I/O.
func (n *Node) Status() *Status { return n.gate.status.Load() }

// Ahead is how much the server's wall clock is ahead of this process's; 0 if that is not known.
func (n *Node) Ahead() time.Duration { return time.Duration(n.ahead.Load()) }

// Send has a request sent. It does not block, and the answer does not come before it returns. With
// an error it has not been taken, and no answer comes. A release that finds the queue full is
// repeated later all the same.
func (n *Node) Send(r *Request) error {
	err := n.queue.put(r)
	if err == ErrOverloaded && r.Call.Op.Frees() {
		n.retries.add(r, false, n.cfg.Clock.Now())
	}
	n.signal()
	return err
}

func (n *Node) signal() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// Close has no more requests taken, and those that were taken sent. It does not wait, see Wait.
func (n *Node) Close() {
	if n.queue.close() {
		close(n.closing)
	}
}

// Wait waits until everything has been answered and the node has stopped, after a Close.
func (n *Node) Wait() { <-n.stopped }

// Run is the writer. It sends batches until the node is closed, and then once more what is still
// queued.
func (n *Node) Run() {
	defer close(n.stopped)
	defer n.work.Wait()
	n.startLook() // so that the first request need not wait for that
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
		select {
		case <-n.closing:
			n.finish()
			return
		default:
		}
		n.doDue()
		select {
		case <-n.closing:
			continue
		default:
		}
		n.gather.yield(n.cfg.Clock)
		n.send()
		alarm.Reset(n.untilDue())
	}
}

// finish sends what is left.
func (n *Node) finish() {
	n.cancelLook()
	n.landAll()
	n.requeue(n.retries.take())
	for n.send(); len(n.pending) > 0 || len(n.window.inFlight) > 0; n.send() {
		n.landAll()
	}
	n.part()
	if c := n.client.Load(); c != nil {
		(*c).Close()
	}
}

// isClosing reports whether nothing new is to be begun.
func (n *Node) isClosing() bool {
	select {
	case <-n.closing:
		return true
	default:
		return false
	}
}

// requeue has requests sent after those that are pending.
func (n *Node) requeue(again []*Request) {
	n.pending = append(n.pending, again...)
	n.buffer = n.pending
}

// collect takes what is queued, unless as much is pending: that is bounded, too.
func (n *Node) collect() {
	if len(n.pending) >= maxQueue {
		return
	}
	var place []*Request
	if len(n.pending) == 0 {
		clear(n.buffer)
		place = n.buffer
	}
	waiting := n.queue.take(place)
	if len(n.pending) == 0 {
		n.pending, n.buffer = waiting, waiting
	} else {
		n.requeue(waiting)
	}
}

// send sends what is queued, or as much of it as may be in flight.
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
		case n.window.size() == 1 && len(n.window.inFlight) == 0:
			n.encode(b, live)
			b.exchange(n.cfg.Clock, &n.generation)
			err = n.settle(b)
		default:
			n.encode(b, live)
			n.several = true
			n.window.start(b, n.cfg.Clock, &n.generation)
		}
		if err != nil { // the others would wait for the same node in vain
			rest := n.pending
			n.pending = nil
			for _, r := range rest {
				n.refuse(r, err)
			}
		}
	}
}

// ready returns what may be sent of a batch, and answers the rest. An error means that the node
// cannot be reached.
func (n *Node) ready(b *batch) (live []*Request, err error) {
	b.ctx = b.limit.start(n.cfg.Timeout)
	live = n.wanted(b.requests, true)
	if len(live) == 0 {
		return nil, nil
	}
	if err = n.reach(b, live); err != nil {
		n.exchanged(err, false)
		n.gate.unreached(err)
		for _, r := range live {
			n.refuse(r, err)
		}
		return nil, err
	}
	return n.admitted(live), nil
}

// wanted answers the requests whose attempt has ended or whose time has passed, and returns the
// others. With join, those that wait go on as what joins the queue; later that could follow what
// has left it.
func (n *Node) wanted(requests []*Request, join bool) []*Request {
	now := n.cfg.Clock.Now()
	if !slices.ContainsFunc(requests, func(r *Request) bool { return now > r.Expires || r.hasEnded() }) {
		return requests
	}
	kept := requests[:0:0]
	for _, r := range requests {
		switch {
		case r.hasEnded():
			if join && r.Call.Op.Grants() && r.Call.Member != "" && now <= r.Expires {
				kept = append(kept, &Request{Call: r.Call.Joining(), Expires: r.Expires})
			}
			n.drop(r, ErrAbandoned)
		case now > r.Expires:
			n.drop(r, ErrTimeout)
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
			n.held = append(n.held, r)
		case !r.Call.Op.Gated():
			kept = append(kept, r)
		default:
			n.refuse(r, n.gate.status.Load().Reason())
		}
	}
	return kept
}

// isLooking reports whether a look is under way that may open the gate. If it is time, it begins
// one.
func (n *Node) isLooking() bool {
	if n.look == nil && n.gate.lookAt <= n.cfg.Clock.Now() {
		n.startLook()
	}
	return n.look != nil
}

// startLook begins a look at the server, unless one is under way.
func (n *Node) startLook() {
	if n.look != nil || n.isClosing() {
		return
	}
	n.look = newLook(n.gate.epoch)
	l := n.look
	n.work.Go(func() { l.run(&n.cfg, n.found) })
}

// heed takes what a look has found, and has it go on or ends it. Then what waited for it is sent
// or refused, in the order in which it came.
func (n *Node) heed(l *look) {
	goesOn := n.next(l)
	if !l.tried {
		l.goesOn <- goesOn // there is room for one
	}
	if goesOn {
		return
	}
	n.look = nil
	n.pending = append(n.held, n.pending...)
	n.buffer, n.held = n.pending, nil
}

// next takes what a look has found, and reports whether it goes on.
func (n *Node) next(l *look) bool {
	g := n.gate
	switch {
	case l.epoch != g.epoch:
		return false // it is about a server that was another one, perhaps
	case g.open:
		if l.err == nil {
			n.exchanged(nil, false)
		}
		n.recheck(l)
		return false
	case l.tried:
		n.opens(l)
		return false
	case g.isExcused(l.err):
		return true
	case l.err != nil:
		n.looked(g.failed(explain(l.err, infoNeeded)), false)
		return false
	}
	n.setAhead(l.time)
	g.follow(l.info)
	if err := g.sample(l.sent, l.received, l.time); err != nil || g.decide(l.info) != nil {
		n.looked(nil, false)
		return false
	}
	l.age = g.age(n.cfg.Clock.Now())
	return true
}

// recheck takes a look at a server that votes. Where no new connection could be had the one in use
// is asked, and its answer alone counts. Where new connections lead to another process than the one
// that was vouched for, the one in use is of no more use, even if it lives.
func (n *Node) recheck(l *look) {
	g := n.gate
	if g.refused = l.err; l.err != nil {
		n.probe(wire.Info)
		return
	}
	if client := n.client.Load(); client != nil && n.cfg.RestartGate && l.info.RunID != g.process.id {
		ctx, cancel := context.WithTimeout(l.ctx, n.cfg.Timeout)
		if s := whoIs(ctx, *client, n.cfg.Clock); s.err == nil && s.info.RunID == g.process.id {
			n.cfg.Observer.Elsewhere()
		}
		cancel()
		n.leave(*client)
	}
	if g.inspect(l.info); g.open {
		n.setAhead(l.time)
		_ = g.sample(l.sent, l.received, l.time)
	}
}

// opens opens the gate, if the trial went well.
func (n *Node) opens(l *look) {
	if why := wire.FaultOf(l.err); why != nil && l.retry > 0 {
		n.gate.close(why, n.cfg.Clock.Now().Add(l.retry))
		n.looked(nil, true)
		return
	}
	if l.err != nil {
		n.looked(n.gate.refuses(l.err), true)
		return
	}
	t := l.trial
	var dangers *wire.Fault
	if l.info != nil {
		dangers = Risk(l.info)
	}
	if t.why != nil {
		n.gate.close(t.why, n.cfg.Clock.Now().Add(recheckEvery))
	} else {
		n.gate.admit(dangers, t.lacks)
		n.greet()
	}
	n.looked(nil, true)
}

// cancelLook ends a look that is under way, and answers what waits for it.
func (n *Node) cancelLook() {
	if n.look == nil {
		return
	}
	n.look.end()
	if l := <-n.found; !l.tried {
		l.goesOn <- false
	}
	held := n.held
	n.look, n.held = nil, nil
	for _, r := range held {
		n.refuse(r, ErrClosed)
	}
}

func (n *Node) setAhead(server time.Duration) { n.ahead.Store(int64(server) - time.Now().UnixNano()) }

// exchanged tells how an exchange went, which may have carried a script that may write.
func (n *Node) exchanged(err error, writes bool) {
	if counts, does := n.hearing.heard(noAnswer(err), writes, n.cfg.Clock.Now()); does {
		n.cfg.Observer.Exchanged(counts)
	}
}

// looked tells how a look went, which may have ended with a trial. One that worked is an exchange
// that worked; the reverse does not hold, because a look needs a connection of its own.
func (n *Node) looked(err error, tried bool) {
	err = noAnswer(err)
	if err == nil {
		n.exchanged(nil, tried)
	}
	n.cfg.Observer.Looked(err)
}

// noAnswer returns err if it means that the server did not answer.
func noAnswer(err error) error {
	if err == nil || wire.IsServerError(err) {
		return nil
	}
	return timely(err)
}

// connected returns the client, which it makes if there is none.
func (n *Node) connected() (valkey.Client, error) {
	if c := n.client.Load(); c != nil {
		return *c, nil
	}
	client, err := n.cfg.Connect(context.Background(), func() { n.generation.Add(1) })
	if err == nil {
		n.client.Store(&client)
		n.several = false
	}
	return client, err
}

// settle answers the requests of a batch that is back, and sends those once more that are worth it.
// It returns why the node did not answer, if it did not.
func (n *Node) settle(b *batch) (broken error) {
	n.gather.several = len(b.requests) > 1
	again, broken := n.answerAll(b)
	n.giveUp(b, broken)
	for len(again) > 0 {
		if err := n.reach(b, again); err != nil {
			for _, r := range again {
				n.refuse(r, err)
			}
			broken = err
			n.exchanged(err, false)
			break
		}
		// What was released meanwhile must not be sent after its release.
		if again = n.admitted(n.wanted(again, false)); len(again) == 0 {
			break
		}
		n.encode(b, again)
		b.exchange(n.cfg.Clock, &n.generation)
		again, broken = n.answerAll(b)
		n.giveUp(b, broken)
	}
	n.window.finish(b)
	n.part()
	return broken
}

// giveUp has the next batch sent over another connection, if this one has not answered in time:
// valkey-go gives a connection up by itself only if that has never carried more than one batch at a
// time.
func (n *Node) giveUp(b *batch, broken error) {
	if n.several && wire.IsTimeout(broken) {
		n.leave(b.client)
	}
}

// answerAll answers the requests of a batch, all but those that it returns because they are worth
// sending once more: those whose script the server does not know (it is new, restarted, or was
// flushed), those whose connection had broken while it was idle, and those that were sent together
// with others and failed with them. An acquisition is never repeated on another connection, because
// the server behind that may have lost what the first one promised. broken is why the node did not
// answer, if it did not.
func (n *Node) answerAll(b *batch) (again []*Request, broken error) {
	g, requests, counts := n.gate, b.requests, n.counts(b)
	writes := slices.ContainsFunc(b.requests, func(r *Request) bool { return r.Call.Op.Writes() })
	shut := false // the server answers, but is not the one that was vouched for, or not as it was
	cut := false  // the connection broke
	for c, size := range b.sizes {
		group := requests[:size]
		requests = requests[size:]
		results := n.encoder.decode(b, c, group)
		for i, r := range group {
			if results[i].Alone {
				r.alone = true
				again = append(again, r)
				continue
			}
			a := Answer{Answer: results[i].Answer, Err: results[i].Err, Sent: b.sent, Received: b.received}
			if a.Err == nil {
				a.Err = n.examine(r, &a.Answer, b, counts)
			}
			err := a.Err
			if err == nil {
				n.answer(r, a)
				continue
			}
			isBroken := wire.IsBroken(err)
			cut = cut || isBroken
			if g.open && wire.IsDemoted(err) {
				shut = true
			}
			if g.open && isBroken {
				g.lookAt = min(g.lookAt, b.received.Add(MaxPause)) // another process may answer next
			}
			if r.worthRepeating(err) {
				r.resent, r.unknown = r.resent || isBroken, r.unknown || wire.IsNoScript(err)
				again = append(again, r)
				b.commands = nil // the client may still have it
				continue
			}
			if wire.IsServerError(err) {
				g.answeredError(r.Call.Op, err, b.received)
			} else {
				broken, b.commands = err, nil
			}
			n.fail(r, err)
		}
	}
	answered := broken == nil && !cut
	if shut || answered && g.wasAbsent(b.received) {
		g.shut()
	}
	if answered && writes {
		g.answered = b.received
	}
	if answered {
		n.window.trip.observe(b.received.Sub(b.sent), b.received, b.leases)
	}
	b.requests, b.results = nil, nil
	if len(again) == 0 {
		n.exchanged(broken, writes)
	}
	return again, broken
}

// worthRepeating reports whether a request is to be sent once more after that error. What joins a
// queue is not, on another connection: it could follow what has left the queue.
func (r *Request) worthRepeating(err error) bool {
	switch {
	case wire.IsNoScript(err):
		return !r.unknown
	default:
		return !r.resent && r.Call.Op.Repeatable() && r.Call.Op != wire.Join && wire.IsBroken(err)
	}
}

// examine looks at what an answer tells about its server, and returns why it may not count.
func (n *Node) examine(r *Request, a *wire.Answer, b *batch, counts bool) error {
	info := a.More().Info
	if info != nil {
		n.gate.inspect(info)
	}
	if a.More().Trial != nil {
		n.gate.tried(trialOf(a.More().Trial))
	}
	if a.Server != 0 && a.Server != b.server && (info == nil || n.gate.open) { // all answers of a command have one reading; another process, another clock
		b.server = a.Server
		n.setAhead(a.Server)
		_ = n.gate.sample(b.sent, b.received, a.Server)
	}
	if op := r.Call.Op; !counts && op.Counted() && a.DidSomething() && !(n.gate.reading && op.Reads()) {
		return n.uncounted()
	}
	return n.gate.counts(r.Call.Op, a, b.received)
}

// fail answers a request that the server did not carry out, as far as is known. A release is tried
// again until its key has expired.
func (n *Node) fail(r *Request, err error) { n.failWith(r, failed(err)) }

// refuse is fail for what is not sent, or not again.
func (n *Node) refuse(r *Request, err error) { n.failWith(r, r.unsent(err)) }

// drop answers a request that nobody wants any more before it is sent, or sent again.
func (n *Node) drop(r *Request, err error) { n.answer(r, r.unsent(err)) }

// unsent is the answer to a request that is not sent. One that was sent before, alone or with
// others, and is not sent again, may have been carried out.
func (r *Request) unsent(err error) Answer {
	a := failed(err)
	a.Unsent = !r.alone && !r.resent
	return a
}

func (n *Node) failWith(r *Request, a Answer) {
	if r.Call.Op.Frees() {
		n.retries.add(r, errors.Is(a.Err, ErrTimeout), n.cfg.Clock.Now())
	}
	n.answer(r, a)
}

func (n *Node) answer(r *Request, a Answer) {
	if to := r.To; to != nil {
		to.Answered(r, a)
	}
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

// leave has the next batch sent over another connection.
func (n *Node) leave(client valkey.Client) {
	if c := n.client.Load(); c != nil && *c == client {
		n.client.Store(nil)
		n.parting = append(n.parting, client)
	}
}

// part closes clients that were given up, when no batch has them any more: a connection that is
// made while its client is being closed could stay open for ever.
func (n *Node) part() {
	n.parting = slices.DeleteFunc(n.parting, func(client valkey.Client) bool {
		if n.window.uses(client) {
			return false
		}
		n.work.Go(client.Close)
		return true
	})
}

// doDue does what a node does by itself: it sends failed releases again, looks at the server, and
// asks one that votes for its clock, and whether leases can still be had.
func (n *Node) doDue() {
	now, g := n.cfg.Clock.Now(), n.gate
	n.part()
	if n.retries.due() <= now {
		n.requeue(n.retries.take())
	}
	if n.look == nil && g.lookAt <= now {
		if g.open && g.answered >= g.looked && !n.cfg.Counts() {
			g.shut() // the look has it join again, as it does with one that is silent when that is back
		}
		if g.open {
			g.lookAt, g.looked = now.Add(g.cfg.LookEvery), now
			if writes := n.cfg.Observer.Due(); !writes || g.trialAt <= now {
				g.trialAt = now.Add(trialEvery)
				n.probe(wire.Trial)
			}
		}
		n.startLook()
	}
	if n.hearing.due() <= now {
		n.hearing.trialAt = now.Add(recheckEvery)
		n.probe(wire.Trial)
	}
	if g.open && g.sampleAt <= now && n.look == nil { // which tells the time
		g.sampleAt = now.Add(g.cfg.SampleEvery)
		n.probe(wire.Time)
	}
}

// probe has the server asked about itself, for the gate.
func (n *Node) probe(op wire.Op) {
	n.requeue([]*Request{{Call: n.cfg.probe(op), Expires: n.cfg.Clock.Now().Add(n.cfg.Timeout)}})
}

// untilDue is how long it takes until doDue has something to do.
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
