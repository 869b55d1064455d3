package redlock

import (
	"container/heap"
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
func (e *extender) add(l *holding, due clock.Instant) {
	e.mu.Lock()
	e.put(l, due)
}

// put is entered with mu held and leaves with it released.
func (e *extender) put(l *holding, due clock.Instant) {
	if l.due != stopped && l.final.Load() == nil {
		if l.lacking.Load() {
			due = min(due, e.q.clock.Now().Add(jitter(l.pause, extendJitter)))
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
func (e *extender) lacks(l *holding) {
	e.mu.Lock()
	if !l.lacking.Swap(true) {
		l.pause = max(2*l.pause, lacksAfter)
	}
	if l.place < 0 { // nobody extends it, or it is being extended, after which the next one is planned
		e.mu.Unlock()
		return
	}
	e.put(l, l.due)
}

func (e *extender) remove(l *holding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l.due = stopped
	if l.place >= 0 {
		heap.Remove(&e.due, l.place)
	}
}

// stopped is the due time of a lease that is not extended any more.
const stopped clock.Instant = -1

// run extends what is due until the Quorum is closed.
func (e *extender) run() {
	timer := time.NewTimer(clock.AtOnce)
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
			timer.Reset(max(next, clock.AtOnce))
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

func (e *extender) popDue() []*holding {
	e.mu.Lock()
	defer e.mu.Unlock()
	var due []*holding
	now := e.q.clock.Now()
	if len(e.due) == 0 || e.due[0].at > now {
		return nil
	}
	for len(e.due) > 0 && e.due[0].at <= now.Add(e.due[0].lease.attempt.cfg.interval/extendSlack) {
		due = append(due, heap.Pop(&e.due).(*holding))
	}
	return due
}

// extend starts extensions of what is due, and returns; the replies do the rest. Leases with the
// same TTL that want nothing more than to be renewed share one. What has the same timeout shares a
// timer.
func (e *extender) extend(leases []*holding) {
	started := make(map[time.Duration][]*extension)
	start := e.q.clock.Now()
	together := make(map[group][]*holding)
	for _, l := range leases {
		l.arm()
		if g, ok := l.group(start); ok {
			together[g] = append(together[g], l)
		} else if x := l.startExtend(nil, false); x != nil {
			started[l.TTL()] = append(started[l.TTL()], x)
		}
	}
	for g, all := range together {
		for some := range slices.Chunk(all, wire.MaxGroup) {
			if x := e.q.startTogether(some, g, start); x != nil {
				started[g.ttl] = append(started[g.ttl], x)
			}
		}
	}
	for ttl, some := range started {
		time.AfterFunc(e.q.cfg.timeout(ttl), func() {
			for _, x := range some {
				x.expire()
			}
		})
	}
}

// extendAlone extends a lease by itself whose key is not there on some node of an extension of
// several. That one is traced, and plans the next.
func (e *extender) extendAlone(l *holding) {
	e.mu.Lock()
	stopped := l.due == stopped
	e.mu.Unlock()
	if stopped {
		return
	}
	if x := l.startExtend(nil, true); x != nil {
		time.AfterFunc(e.q.cfg.timeout(l.TTL()), x.expire)
	}
}

// plan is called when an extension's outcome is certain.
func (e *extender) plan(l *holding, err error, start clock.Instant) {
	if err == nil {
		e.add(l, start.Add(jitter(l.attempt.cfg.interval, extendJitter)))
		return
	}
	e.add(l, e.q.clock.Now().Add(jitter(l.attempt.cfg.retryAfter, extendJitter)))
}

// dueHeap orders leases by their next extension.
type dueHeap []dueLease

// dueLease has the time beside the lease, to compare many without a look at each.
type dueLease struct {
	at    clock.Instant
	lease *holding
}

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].lease.place, h[j].lease.place = i, j
}

// Push adds x, a *holding.
func (h *dueHeap) Push(x any) {
	l := x.(*holding)
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
