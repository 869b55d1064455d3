// Package waitqueue tells those who wait for a key when it is their turn, without polling.
//
// Those who wait for a key queue for it on every node, in a sorted set of its own beside the key:
// of each process the one that has waited longest. An attempt that is refused joins: its score is
// the time at which it began to wait by the nodes' clocks (their median, so that clients with wrong
// clocks have no advantage), which puts it in the same place on every node, also if it is lost and
// joins again. A release calls the first: it publishes to the channel of that waiter's process, and
// reserves the key for it for a node timeout, as a negative score that is the server's time at
// which that ends. Only the first three pass a reservation, and nobody with its first attempt: so
// who has just released cannot come before them. One that is called and does not come costs that
// timeout, and its place: the next two are told to come then. One that gives up has the next
// called. A process that nobody hears any more receives nothing, which is seen at once.
//
// The queue only ever refuses. It grants nothing, and all that is lost with it is time: a waiter
// that hears nothing comes when the keys in its way expire, those before it first, and about once a
// TTL in any case.
//
// The servers' part is in the scripts of package wire. This package has the tickets of those who
// wait in this process, and hears the calls of the nodes (package listen).
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
	Channel    string                    // what the names of channels begin with
	MaxDelay   time.Duration             // after which it may be a waiter's turn; a call with a longer one is nobody's
	Subscribed func(node int, err error) // how a subscription went; must not block
}

// Queue is those of this process who wait. It listens when somebody does. Calls are hints: they may
// be lost, and nothing but the time of an attempt depends on them. It is safe for concurrent use.
type Queue struct {
	cfg     Config
	process string

	mu        sync.Mutex
	listens   bool               // guarded by mu; somebody has waited
	listening map[int]bool       // guarded by mu; nodes that confirmed the subscription
	tickets   map[uint64]*Ticket // guarded by mu
	last      uint64             // guarded by mu; the last place
}

// Ticket is one that waits.
type Ticket struct {
	Member  string        // of the queue of its key
	Notices <-chan Notice // receives when it is worth to try

	number  uint64
	need    int         // nodes that make a quorum
	notices chan Notice // capacity 1

	mu      sync.Mutex
	release string          // guarded by mu; the owner value of the release being counted
	delays  []time.Duration // guarded by mu; that nodes have told it to wait after that
	grace   *time.Timer     // guarded by mu
	left    bool            // guarded by mu
}

// Notice tells a waiter to try.
type Notice struct {
	Released bool          // the holder has released the key; if not, it may have, unheard
	FreeIn   time.Duration // until it is this one's turn: what is left of a minimum hold, and the time of those before it
}

// New makes a queue that nobody waits in.
func New(cfg Config) *Queue {
	return &Queue{cfg: cfg, process: wire.NewProcess(), listening: make(map[int]bool), tickets: make(map[uint64]*Ticket)}
}

// IsHeard reports whether a quorum of nodes can call.
func (q *Queue) IsHeard() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.listening) >= q.cfg.Need
}

// Place is that of one who begins to wait now, for whatever key: a time in microseconds since 1970,
// by the median of the nodes' clocks as far as they are known, or the next one that no other of the
// process has.
func (q *Queue) Place() uint64 {
	now := uint64(max(q.cfg.Now().UnixMicro(), 0))
	q.mu.Lock()
	defer q.mu.Unlock()
	if before := q.last - now; before < uint64(time.Second/time.Microsecond) { // else a clock was wrong
		now = q.last + 1
	}
	q.last = now
	return now
}

// Join makes a ticket with that place and starts listening. Where no quorum can call yet, it gets a
// notice when one can, because what was released before then is not heard. One that has been
// refused already, without having joined, gets it at once if one can. The caller ends it with
// Leave.
func (q *Queue) Join(place uint64, identity string, refused bool) *Ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	notices := make(chan Notice, 1)
	t := &Ticket{Member: wire.NewMember(place, q.process, identity), Notices: notices, number: place, need: q.cfg.Need, notices: notices}
	q.tickets[place] = t
	if !q.listens {
		q.listens = true
		q.cfg.Listener.Subscribe(q.cfg.Channel+q.process, calls{q})
	}
	if refused && len(q.listening) >= q.cfg.Need {
		t.push(Notice{})
	}
	return t
}

// Leave ends a ticket.
func (q *Queue) Leave(t *Ticket) {
	q.mu.Lock()
	if q.tickets[t.number] == t {
		delete(q.tickets, t.number)
	}
	q.mu.Unlock()
	t.end()
}

// While has send called if the member's ticket is there, which cannot leave meanwhile: so what
// takes it out of the queues is sent after that.
func (q *Queue) While(member string, send func()) {
	number := wire.MemberNumber(member)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.tickets[number] != nil {
		send()
	}
}

// calls is the queue as it hears the nodes.
type calls struct{ *Queue }

// Subscribed is told whether a node can call.
func (q calls) Subscribed(node int, err error) {
	if q.cfg.Subscribed(node, err); err != nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.listening[node] = true
	if len(q.listening) == q.cfg.Need {
		for _, t := range q.tickets {
			t.push(Notice{})
		}
	}
}

// Lost is told that a node cannot call any more.
func (q calls) Lost(node int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.listening, node)
}

// Heard takes a node's call.
func (q calls) Heard(_ int, message string) {
	call, ok := wire.ParseMessage(message)
	if !ok || call.After > q.cfg.MaxDelay {
		return // nobody's release: a minimum hold is below the TTL
	}
	q.mu.Lock()
	t := q.tickets[call.Number]
	q.mu.Unlock()
	if t != nil {
		t.count(call.Release, call.After)
	}
}

// push replaces a notice that has not been received yet.
func (t *Ticket) push(n Notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.replace(n)
}

// replace is push with mu held.
func (t *Ticket) replace(n Notice) {
	select {
	case <-t.notices:
	default:
	}
	t.notices <- n
}

// end stops what the ticket waits for.
func (t *Ticket) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = true
	if t.grace != nil {
		t.grace.Stop()
	}
}

// count adds a node's call. The waiter comes when a quorum has called, after what the last of a
// quorum told it to wait. Who is the first on some nodes only, or is called by fewer, comes after a
// grace: an attempt before a quorum has freed the key would fail.
func (t *Ticket) count(release string, delay time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left {
		return
	}
	if release != t.release {
		t.release, t.delays = release, t.delays[:0]
		if t.grace != nil {
			t.grace.Stop()
		}
		t.grace = time.AfterFunc(callGrace, func() { t.graced(release) })
	}
	at, _ := slices.BinarySearch(t.delays, delay)
	t.delays = slices.Insert(t.delays, at, delay)
	t.delays = t.delays[:min(len(t.delays), t.need)] // the others change nothing, however many a node sends
	if len(t.delays) < t.need {
		return
	}
	if t.delays[0] == t.delays[t.need-1] {
		t.grace.Stop()
	}
	if at < t.need { // else it changes nothing
		t.replace(Notice{Released: true, FreeIn: t.delays[t.need-1]})
	}
}

// graced gives a notice to a waiter that fewer nodes than a quorum have called.
func (t *Ticket) graced(release string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.left && release == t.release {
		t.replace(Notice{Released: true, FreeIn: max(t.delays[0]-callGrace, 0)})
	}
}

// callGrace is how long a call of one node waits for those of the others.
const callGrace = 10 * time.Millisecond
