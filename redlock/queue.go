package redlock

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Those who wait for a key queue for it on every node, in a sorted set of its own beside the key.
// An attempt that is refused joins: its score is the time at which it began to wait by the nodes'
// clocks (their median, so that clients with wrong clocks have no advantage), which puts it in the
// same place on every node, also if it is lost and joins again. A release calls the first: it
// publishes to the channel of that waiter's process, and reserves the key for it for a node
// timeout, as a negative score that is the server's time at which that ends. Only the first three
// pass a reservation, and nobody with its first attempt: so who has just released cannot come
// before them. One that is called and does not come costs that timeout, and its place: the first
// waiters of two other processes are told to come then. One that gives up has the next called. A
// process that nobody hears any more receives nothing, which is seen at once.
//
// The queue only ever refuses. It grants nothing, and all that is lost with it is time: a waiter
// that hears nothing comes when the keys in its way expire, those before it first, and about once a
// TTL in any case.

const (
	// rankStep is how long after each other waiters come when keys expire; more than a round takes
	// where the network is good.
	rankStep = 2 * time.Millisecond
	// Those up to maxRank come for it. The others, up to lastRank, come a turn later, in case the
	// first have all died; or they are called, or ask once a TTL as all do.
	maxRank  = 4
	lastRank = 64
	// maxTurn bounds what a key is reserved. A reservation that seems to be longer is one of a
	// clock that has jumped.
	maxTurn = time.Second
	// queueLives is how many TTLs of its waiters a queue lives: they ask once in each.
	queueLives = 3
)

// calls hears when it is a waiter's turn, on a connection of its own to each node, which it opens
// when somebody waits. Calls are hints: they may be lost, and nothing but the time of an attempt
// depends on them.
type calls struct {
	q       *Quorum
	process string
	channel string

	mu        sync.Mutex
	listeners []*listener        // guarded by mu; one a node, empty until something waits
	listening map[int]bool       // guarded by mu; nodes that confirmed the subscription
	waiters   map[uint64]*waiter // guarded by mu
}

// waiter is one that waits.
type waiter struct {
	calls  *calls
	number uint64
	member string
	wake   chan wakeUp // capacity 1; receives when it is worth to try

	// guarded by calls.mu
	release string          // the owner value of the release being counted
	delays  []time.Duration // that nodes have told it to wait after that
	grace   *time.Timer
}

// wakeUp tells a waiter to try.
type wakeUp struct {
	released bool          // the holder has released the key; if not, it may have, unheard
	freeIn   time.Duration // until it is this one's turn: what is left of a minimum hold, and the time of those before it
}

func newCalls(q *Quorum) *calls {
	c := &calls{q: q, process: wire.NewProcess(), listening: make(map[int]bool), waiters: make(map[uint64]*waiter)}
	c.channel = q.texts.channel + c.process
	return c
}

// heard reports whether a quorum of nodes can call.
func (c *calls) heard() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.listening) >= c.q.need
}

// join makes a waiter and starts listening. Where no quorum can call yet, it wakes when one can,
// because what was released before then is not heard. One that has been refused already, without
// having joined, wakes at once if one can. The caller ends it with leave.
func (c *calls) join(identity string, refused bool) *waiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	number := c.q.micros()
	for c.waiters[number] != nil {
		number++
	}
	w := &waiter{calls: c, number: number, member: wire.NewMember(number, c.process, identity), wake: make(chan wakeUp, 1)}
	c.waiters[w.number] = w
	if c.listeners == nil {
		c.start()
	}
	if refused && len(c.listening) >= c.q.need {
		w.push(wakeUp{})
	}
	if len(c.listening) < len(c.listeners) {
		for _, l := range c.listeners {
			l.signal()
		}
	}
	return w
}

// rejoin puts an attempt's member back into the queue of a node that had granted to it, and with
// that taken it out, unless it has left. It follows what takes the grant back.
func (q *Quorum) rejoin(node int, at *attempt) {
	to, now := wire.MemberNumber(at.member), q.clock.Now()
	q.calls.mu.Lock()
	defer q.calls.mu.Unlock()       // leave sends nothing before the member is gone
	if q.calls.waiters[to] != nil { //mutant:place-of-a-waiter-that-left
		q.nodes[node].send(&request{call: at.call(wire.Join), attempt: at, expires: now.Add(at.cfg.ttl)})
	}
}

// start makes the listeners, unless the Quorum is closed, which waits for them. Called with mu
// held.
func (c *calls) start() {
	c.q.mu.Lock()
	defer c.q.mu.Unlock()
	if c.q.closed {
		return
	}
	for _, n := range c.q.nodes {
		l := &listener{calls: c, node: n, wanted: make(chan struct{}, 1)}
		c.listeners = append(c.listeners, l)
		c.q.work.Go(l.run)
	}
}

// leave forgets a waiter.
func (w *waiter) leave() {
	w.calls.mu.Lock()
	defer w.calls.mu.Unlock()
	if w.grace != nil {
		w.grace.Stop()
	}
	delete(w.calls.waiters, w.number)
}

// push replaces what has not been received yet. Called with mu held.
func (w *waiter) push(u wakeUp) {
	select {
	case <-w.wake:
	default:
	}
	w.wake <- u
}

// awaited reports whether somebody waits.
func (c *calls) awaited() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiters) > 0
}

// confirmed notes that a node can call.
func (c *calls) confirmed(node int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listening[node] = true
	if len(c.listening) == c.q.need {
		for _, w := range c.waiters {
			w.push(wakeUp{})
		}
	}
}

// deaf notes that a node's connection is gone.
func (c *calls) deaf(node int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.listening, node)
}

// receive takes a node's call: the milliseconds after which it is the waiter's turn, its number,
// and the owner value that was released.
func (c *calls) receive(m valkey.PubSubMessage) {
	ms, rest, ok := strings.Cut(m.Message, " ")
	number, release, ok2 := strings.Cut(rest, " ")
	n, err := strconv.ParseInt(ms, 10, 64)
	to, err2 := strconv.ParseUint(number, 10, 64)
	if !ok || !ok2 || err != nil || err2 != nil || n < 0 || n > maxMaxTTL.Milliseconds() {
		return // nobody's release: a minimum hold is below the TTL
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.waiters[to]; w != nil { //mutant:waiter-not-told
		w.count(release, time.Duration(n)*time.Millisecond, c.q.need)
	}
}

// count adds a node's call. The waiter comes when a quorum has called, after what the last of a
// quorum told it to wait. Who is the first on some nodes only, or is called by fewer, comes after a
// grace: an attempt before a quorum has freed the key would fail. Called with mu held.
func (w *waiter) count(release string, delay time.Duration, need int) {
	if release != w.release {
		w.release, w.delays = release, w.delays[:0]
		if w.grace != nil {
			w.grace.Stop()
		}
		w.grace = time.AfterFunc(callGrace, func() { w.graced(release) })
	}
	at, _ := slices.BinarySearch(w.delays, delay)
	w.delays = slices.Insert(w.delays, at, delay)
	w.delays = w.delays[:min(len(w.delays), need)] // the others change nothing, however many a node sends //mutant:calls-without-bound
	if len(w.delays) < need {
		return
	}
	if w.delays[0] == w.delays[need-1] {
		w.grace.Stop()
	}
	if at < need { // else it changes nothing
		w.push(wakeUp{released: true, freeIn: w.delays[need-1]})
	}
}

// graced wakes a waiter that fewer nodes than a quorum have called.
func (w *waiter) graced(release string) {
	w.calls.mu.Lock()
	defer w.calls.mu.Unlock()
	if release == w.release {
		w.push(wakeUp{released: true, freeIn: max(w.delays[0]-callGrace, 0)})
	}
}

// callGrace is how long a call of one node waits for those of the others.
const callGrace = 10 * time.Millisecond

// micros is the time in microseconds since 1970 by the median of the nodes' clocks, as far as they
// are known.
func (q *Quorum) micros() uint64 {
	ahead := make([]int64, 0, len(q.nodes))
	for _, n := range q.nodes {
		if by := n.ahead.Load(); by != 0 {
			ahead = append(ahead, by)
		}
	}
	slices.Sort(ahead)
	at := time.Now().UnixMicro()
	if len(ahead) > 0 {
		at += ahead[len(ahead)/2] / int64(time.Microsecond) //mutant:place-by-the-own-clock
	}
	return uint64(max(at, 0))
}
