// Package waitqueue tells waiters for a key when it is their turn, without polling.
//
// Waiters for a key queue on every node, in a sorted set beside the key: of each process the waiter
// that has waited longest. An attempt that is refused joins. Its score is the time at which it
// began to wait, by the median of the nodes' clocks, so that clients with wrong clocks have no
// advantage. That score puts the waiter in the same place on every node, even if it is lost there
// and joins again.
//
// A release calls the first waiter: it publishes to the channel of that waiter's process, takes the
// waiter out of the queue, and reserves the key for it for a node timeout. The reservation is a
// text in the key, in the place of the lock. So the key is held for all other attempts, and a
// process that has just released it cannot come before the waiter. The acquisition of the waiter
// takes the key from the reservation.
//
// The two waiters behind the first are called, too, and come when the turns before theirs are over.
// A waiter that is called and does not come costs the others that timeout, and has lost its place.
// One that comes and is refused joins again, with the same score. A waiter that gives up gives its
// reservation to the next one. A call to a process that has gone has no receiver: the node sees
// that at once, and calls the next waiter.
//
// The queue grants nothing. If a queue or a call is lost, waiters lose time and nothing else. A
// waiter that hears nothing tries when the keys in its way expire, after the waiters before it, and
// about once a TTL in any case.
//
// The servers' part is in the scripts of package wire. This package has the tickets of the waiters
// of this process, and hears the calls of the nodes (package listen).
package waitqueue

import (
	"slices"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/redlock/internal/listen"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Config is what a Queue is made of.
type Config struct {
	Now        func() time.Time          // by the median of the nodes' clocks, as far as that is known
	Listener   *listen.Listener          // to the nodes
	Need       int                       // nodes that make a quorum
	Channel    string                    // prefix of the names of channels
	MaxDelay   time.Duration             // the longest time until a waiter's turn; a call with a longer one is ignored
	Subscribed func(node int, err error) // how a subscription went; must not block
}

// Queue has the waiters of this process. It listens from the first waiter on. Calls are hints: they
// may be lost, and nothing but the time of an attempt depends on them. It is safe for concurrent
// use.
type Queue struct {
	cfg     Config
	process string

	mu        sync.Mutex
	listens   bool               // guarded by mu; there was a waiter
	listening map[int]bool       // guarded by mu; nodes that confirmed the subscription
	tickets   map[uint64]*Ticket // guarded by mu
	last      uint64             // guarded by mu; the place that was given last
}

// Ticket is a waiter.
type Ticket struct {
	Member  string        // of the queue of its key
	Notices <-chan Notice // has a notice when an attempt is worth it

	q       *Queue
	number  uint64
	notices chan Notice // capacity 1

	release string          // guarded by q.mu; the release whose calls are counted, see wire.Message
	delays  []time.Duration // guarded by q.mu; how long nodes have told the waiter to wait after that release; sorted
	grace   *time.Timer     // guarded by q.mu; ends the grace, see count
}

// Notice tells a waiter to try.
type Notice struct {
	Released bool          // the holder has released the key; if false, it may have released it unheard
	FreeIn   time.Duration // until it is this waiter's turn: the rest of a minimum hold, and the turns before
}

// New makes a Queue without waiters.
func New(cfg Config) *Queue {
	return &Queue{cfg: cfg, process: wire.NewProcess(), listening: make(map[int]bool), tickets: make(map[uint64]*Ticket)}
}

// IsHeard reports whether a quorum of nodes can call this process.
func (q *Queue) IsHeard() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.listening) >= q.cfg.Need
}

// Place returns the place of a waiter that begins to wait now, for any key: a time in microseconds
// since 1970, by the median of the nodes' clocks as far as it is known; or the next one that no
// other waiter of the process has.
func (q *Queue) Place() uint64 {
	now := uint64(max(q.cfg.Now().UnixMicro(), 0))
	q.mu.Lock()
	defer q.mu.Unlock()
	if before := q.last - now; before < uint64(time.Second/time.Microsecond) { // if the last place is more than a second ahead, a clock was wrong
		now = q.last + 1
	}
	q.last = now
	return now
}

// Join makes a ticket with that place, and starts to listen. If no quorum can call yet, the ticket
// gets a notice when a quorum can, because an earlier release is not heard. If a quorum can call, a
// ticket whose attempt was refused before it joined gets a notice at once. The caller ends the
// ticket with Leave.
func (q *Queue) Join(place uint64, identity string, refused bool) *Ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	notices := make(chan Notice, 1)
	t := &Ticket{Member: wire.NewMember(place, q.process, identity), Notices: notices, q: q, number: place, notices: notices}
	q.tickets[place] = t
	if !q.listens {
		q.listens = true
		q.cfg.Listener.Subscribe(q.cfg.Channel+q.process, q.heard, q.changed)
	}
	if refused && len(q.listening) >= q.cfg.Need {
		t.push(Notice{})
	}
	return t
}

// Leave ends a ticket.
func (q *Queue) Leave(t *Ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tickets[t.number] == t {
		delete(q.tickets, t.number)
	}
}

// While calls send if the ticket of the member has not left. The ticket cannot leave meanwhile, so
// the command that takes the member out of the queues is sent after send. send is called with the
// Queue locked.
func (q *Queue) While(member string, send func()) {
	number := wire.MemberNumber(member)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tickets[number] != nil {
		send()
	}
}

// changed notes whether a node can call. It gives all waiters a notice when a quorum can.
func (q *Queue) changed(node int, err error) {
	q.cfg.Subscribed(node, err)
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		delete(q.listening, node)
		return
	}
	q.listening[node] = true
	if len(q.listening) == q.cfg.Need {
		for _, t := range q.tickets {
			t.push(Notice{})
		}
	}
}

// heard takes a node's call.
func (q *Queue) heard(_ int, message string) {
	call, ok := wire.ParseMessage(message)
	if !ok || call.After > q.cfg.MaxDelay {
		return // not of a release: a minimum hold is below the TTL
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.tickets[call.Number]
	if t != nil {
		t.count(call.Release, call.After)
	}
}

// push replaces a notice that has not been received yet. Called with q.mu held.
func (t *Ticket) push(n Notice) {
	select {
	case <-t.notices:
	default:
	}
	t.notices <- n
}

// count adds a node's call. When a quorum has called, the waiter gets a notice, with the delay of
// the last node of a quorum. A waiter that is the first on some nodes only, or that fewer nodes
// call, gets a notice after a grace: an attempt before a quorum has freed the key would fail.
// Called with q.mu held.
func (t *Ticket) count(release string, delay time.Duration) {
	if release != t.release {
		t.release, t.delays = release, t.delays[:0]
		t.grace = time.AfterFunc(callGrace, func() { t.graced(release) })
	}
	need := t.q.cfg.Need
	at, _ := slices.BinarySearch(t.delays, delay)
	t.delays = slices.Insert(t.delays, at, delay)
	t.delays = t.delays[:min(len(t.delays), need)] // longer ones change nothing, however many a node sends
	if len(t.delays) < need {
		return
	}
	if t.delays[0] == t.delays[need-1] {
		t.grace.Stop()
	}
	if at < need { // a longer delay changes nothing
		t.push(Notice{Released: true, FreeIn: t.delays[need-1]})
	}
}

// graced gives a notice to a waiter that fewer nodes than a quorum have called, or with different
// delays, if it is there and waits for that release still.
func (t *Ticket) graced(release string) {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	if t.q.tickets[t.number] == t && release == t.release {
		t.push(Notice{Released: true, FreeIn: max(t.delays[0]-callGrace, 0)})
	}
}

// callGrace is how long the call of one node waits for the calls of the others.
const callGrace = 10 * time.Millisecond
