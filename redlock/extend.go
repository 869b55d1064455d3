package redlock

import (
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// extendJitter spreads extensions by a tenth of the interval, so that leases acquired together are
// not extended together for ever.
const extendJitter = 0.1

// extendSlack is how much early, as a part of its interval, a lease may be extended to share a
// batch with one that is due. Many leases then are extended some eight times in an interval,
// whatever their number.
const extendSlack = 8

// extender extends all leases of a Quorum: one goroutine and one timer, whatever their number. What
// is due together reaches each node in one batch.
type extender struct {
	q    *Quorum
	wake chan struct{} // capacity 1; the earliest due time changed
	mu   sync.Mutex
	due  dueHeap // guarded by mu
}

func newExtender(q *Quorum) *extender {
	return &extender{q: q, wake: make(chan struct{}, 1)}
}

// add plans the lease's next extension, unless it has ended or StopExtending was called.
func (e *extender) add(l *Lease, due clock.Instant) {
	e.mu.Lock()
	e.put(l, due)
}

// put is entered with mu held and leaves with it released.
func (e *extender) put(l *Lease, due clock.Instant) {
	if l.due != never && l.final.Load() == nil { //mutant:stop-extending-once
		if l.lacking.Load() {
			due = min(due, e.q.clock.Now().Add(jitter(l.pause, extendJitter))) //mutant:lacking-node-forgotten
		}
		l.due = due
		if l.place < 0 {
			heap.Push(&e.due, l)
		} else {
			e.due[l.place].at = due
			heap.Fix(&e.due, l.place)
		}
	}
	first := l.place == 0
	e.mu.Unlock()
	if first {
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
}

// lacksAfter is how soon a lease is extended that a node does not have. What was in the way there,
// an attempt of a rival, is taken back within a round trip or two.
const lacksAfter = 50 * time.Millisecond

// lacks brings the lease's next extension forward, because a node has answered that it does not
// have the key. Until then the lease is on a quorum, perhaps, and on no node more. If the node says
// so again, the next extension but one is twice as late, and so on up to the interval: the rival
// may be far away. So all that costs a handful of extensions, whatever nodes say.
func (e *extender) lacks(l *Lease) {
	e.mu.Lock()
	if !l.lacking.Swap(true) {
		l.pause = max(2*l.pause, lacksAfter) //mutant:lacking-node-pestered
	}
	if l.place < 0 { // nobody extends it, or it is being extended, after which the next one is planned
		e.mu.Unlock()
		return
	}
	e.put(l, l.due)
}

func (e *extender) remove(l *Lease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l.due = never
	if l.place >= 0 {
		heap.Remove(&e.due, l.place)
	}
}

// never is the due time of a lease that is not extended any more.
const never clock.Instant = -1

// run extends what is due until the Quorum is closed.
func (e *extender) run() {
	timer := time.NewTimer(atOnce)
	defer timer.Stop()
	for {
		select {
		case <-e.q.done:
			return
		case <-e.wake:
		case <-timer.C:
		}
		if due := e.popDue(); len(due) > 0 {
			e.extend(due)
		}
		if next, ok := e.next(); ok {
			timer.Reset(max(next, atOnce))
		}
	}
}

func (e *extender) next() (time.Duration, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.due) == 0 {
		return 0, false
	}
	return e.due[0].at.Sub(e.q.clock.Now()), true
}

func (e *extender) popDue() []*Lease {
	e.mu.Lock()
	defer e.mu.Unlock()
	var due []*Lease
	now := e.q.clock.Now()
	if len(e.due) == 0 || e.due[0].at > now {
		return nil
	}
	for len(e.due) > 0 && e.due[0].at <= now.Add(e.due[0].lease.attempt.cfg.interval/extendSlack) { //mutant:extended-when-due-only
		due = append(due, heap.Pop(&e.due).(*Lease))
	}
	return due
}

// extend starts convoys, and rounds for leases that join none, and returns; the replies do the
// rest. What has the same timeout shares one timer.
func (e *extender) extend(leases []*Lease) {
	rounds := make(map[time.Duration][]interface{ expire() })
	start := e.q.clock.Now()
	together := make(map[company][]*Lease)
	for _, l := range leases {
		if l.Err() != nil {
			continue
		}
		if in := l.company(start); in != nobody {
			together[in] = append(together[in], l)
		} else if x := l.startExtend(nil, false); x != nil {
			timeout := e.q.cfg.timeout(l.TTL())
			rounds[timeout] = append(rounds[timeout], x)
		}
	}
	timeout := e.q.cfg.timeout(e.q.texts.ttl)
	for in, all := range together {
		for some := range slices.Chunk(all, wire.MaxGroup) {
			rounds[timeout] = append(rounds[timeout], e.q.startConvoy(some, in, start))
		}
	}
	for timeout, rs := range rounds {
		time.AfterFunc(timeout, func() {
			for _, rd := range rs {
				rd.expire()
			}
		})
	}
}

// extendAlone starts a round for a lease whose key is not there on some node of its convoy. The
// convoy traces the extension and plans the next one.
func (e *extender) extendAlone(l *Lease) {
	e.mu.Lock()
	stopped := l.due == never
	e.mu.Unlock()
	if stopped { //mutant:convoy-tries-the-stopped
		return
	}
	if x := l.startExtend(make(chan error, 1), true); x != nil {
		time.AfterFunc(e.q.cfg.timeout(l.TTL()), x.expire)
	}
}

// plan is called when an extension's outcome is certain.
func (e *extender) plan(l *Lease, err error, start clock.Instant) {
	if err == nil {
		e.add(l, start.Add(jitter(l.attempt.cfg.interval, extendJitter))) //mutant:extended-too-often
		return
	}
	e.add(l, e.q.clock.Now().Add(jitter(l.attempt.cfg.retryAfter, extendJitter))) //mutant:failed-extension-not-repeated
}

// extension is the round of an extension.
type extension struct {
	round
	lease  *Lease
	start  clock.Instant
	began  time.Time    // for tracers only
	result chan<- error // gets the outcome; nil where the extender is to plan the next one
	beside bool         // a convoy, which is traced
}

// startExtend sends an extension to all nodes. Its outcome is applied to the lease when it is
// certain, by any goroutine. It returns nil, and nothing happens, if the lease has ended.
func (l *Lease) startExtend(result chan<- error, beside bool) *extension {
	if l.Err() != nil { //mutant:extended-after-the-end
		return nil
	}
	x := &extension{lease: l, start: l.q.clock.Now(), result: result, beside: beside}
	if l.q.cfg.tracers.extend != nil {
		x.began = time.Now()
	}
	l.lacking.Store(false)
	l.mu.Lock()
	spread := x.start.Sub(l.spread) >= spreadEvery
	if spread {
		l.spread = x.start
	}
	l.mu.Unlock()
	call := l.attempt.call(wire.Extend)
	call.TTL, call.Spread = l.q.texts.milliseconds(l.TTL()), spread //mutant:token-not-extended
	x.round.start(OpExtend, len(l.q.nodes), l.q.need)
	x.follow = x
	l.q.broadcast(l.ctx, &x.round, l.attempt, call, clock.Instant(l.deadline.Load()), nil)
	return x
}

func (x *extension) ended(rd *round) {
	err := x.lease.extended(rd, x)
	if x.result != nil {
		x.result <- err
		return
	}
	x.lease.q.extender.plan(x.lease, err, x.start)
}

func (x *extension) late(rd *round, _ int, rep reply) {
	if rep.others() {
		x.lease.q.extender.lacks(x.lease)
	}
	if rep.gone() {
		x.lease.checkRefused(rd.outcome())
	}
}

// others reports whether the node of an extension's reply has the key for another owner.
func (rep *reply) others() bool { return rep.Verdict == wire.Refused && rep.Extended == wire.ByOther }

// extended applies the outcome of an extension. The new deadline counts from the start of its
// round. An outcome that comes after the deadline changes nothing: the lease was lost then.
func (l *Lease) extended(rd *round, x *extension) error {
	o := rd.outcome()
	for i := range o.replies {
		if o.replies[i].others() { //mutant:distant-rival-not-outlasted
			l.q.extender.lacks(l)
		}
	}
	l.checkRefused(o)
	margin, err := l.apply(o, x.start)
	if !x.beside || slices.ContainsFunc(o.replies, func(rep reply) bool { return rep.Extended == wire.Refilled }) {
		l.traceExtend(o, x.began, margin, err)
	}
	return err
}

// apply moves the deadline, or keeps the error for the day the lease is lost. The clock is read
// with mu held, in which the lease also ends: between the deadline and a loss nothing can move the
// deadline.
func (l *Lease) apply(o outcome, start clock.Instant) (margin time.Duration, err error) {
	l.mu.Lock()
	margin = l.remaining()
	if margin <= 0 || l.final.Load() != nil { //mutant:late-extension-revives
		l.mu.Unlock()
		return 0, l.Err()
	}
	defer l.mu.Unlock()
	if !o.success { //mutant:failed-extension-moves-the-deadline
		l.lastErr = l.q.quorumError(OpExtend, l.Key(), o)
		l.spread = start.Add(-spreadEvery)
		return margin, l.lastErr
	}
	l.lastErr = nil
	if next := start.Add(l.q.cfg.validity(l.TTL())); next > clock.Instant(l.deadline.Load()) { //mutant:extended-from-the-reply
		l.deadline.Store(int64(next))
		l.timer.Reset(next.Sub(l.q.clock.Now())) // or the timers of many leases would wake the process all the time, for nothing
	}
	return margin, nil
}

// checkRefused ends the lease if a quorum of nodes does not have it any more, and reports whether
// it did. A node that had lost the key and took it back counts: with a quorum of such nodes others
// may have held it.
func (l *Lease) checkRefused(o outcome) bool {
	gone := 0
	for _, rep := range o.replies {
		if rep.gone() {
			gone++
		}
	}
	if gone < l.q.need { //mutant:loss-by-refusal-ignored
		return false
	}
	l.lose(LostRefused)
	return true
}

// gone reports whether the node of an extension's reply did not have the key for its owner any
// more.
func (rep reply) gone() bool { return rep.Verdict == wire.Refused || rep.Extended == wire.Refilled } //mutant:refilled-quorum-counts

func (l *Lease) traceExtend(o outcome, began time.Time, margin time.Duration, err error) {
	t := l.q.cfg.tracers.extend
	if t == nil {
		return
	}
	data := TraceExtendData{Key: l.Key(), Lease: l, Start: began, Duration: time.Since(began), Margin: margin, Err: err}
	for i, rep := range o.replies {
		if rep.Verdict != wire.Pending {
			answer := NodeAnswer{Node: l.q.nodes[i].addr, Duration: rep.took, OK: rep.Verdict == wire.OK}
			if rep.err != nil {
				answer.Err = rep.err
			}
			data.Answers = append(data.Answers, answer)
		}
		switch rep.Extended {
		case wire.InPlace:
			data.Extended++
		case wire.Refilled:
			data.Refilled++
		}
	}
	t.TraceExtend(l.ctx, data)
}

// Extend sets the keys' expiry to the full TTL again and moves the deadline. There is no need to
// call it unless the lease was acquired WithoutAutoExtend. A failed extension leaves the lease as
// it was: it may be tried again until the deadline.
//
// Errors: *QuorumError, *LostError or ErrReleased when the lease has ended, *OptionError, or ctx's
// own error; after the last the extension may still take effect.
func (l *Lease) Extend(ctx context.Context) error {
	if l.none() {
		return errNoLease
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	result := make(chan error, 1)
	rd := l.startExtend(result, false)
	if rd == nil {
		return l.Err()
	}
	timeout := time.NewTimer(l.q.cfg.timeout(l.TTL()))
	defer timeout.Stop()
	select {
	case err := <-result:
		return err
	case <-l.ctx.Done():
		return l.Err()
	case <-ctx.Done():
		// The round still needs its end, for nodes that never answer.
		time.AfterFunc(l.q.cfg.timeout(l.TTL()), rd.expire)
		return newContextError(ctx, l.Key(), nil)
	case <-timeout.C:
		rd.expire()
		return <-result
	}
}

// dueHeap orders leases by their next extension.
type dueHeap []dueLease

// dueLease has the time beside the lease, to compare many without a look at each.
type dueLease struct {
	at    clock.Instant
	lease *Lease
}

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].lease.place, h[j].lease.place = i, j
}

// Push adds x, a *Lease.
func (h *dueHeap) Push(x any) {
	l := x.(*Lease)
	l.place = len(*h)
	*h = append(*h, dueLease{l.due, l})
}

// Pop removes and returns the last element's lease.
func (h *dueHeap) Pop() any {
	old := *h
	l := old[len(old)-1].lease
	old[len(old)-1] = dueLease{}
	*h = old[:len(old)-1]
	l.place = -1
	return l
}
