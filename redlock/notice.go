package redlock

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"
)

// noticeGrace is how long the release announced by one node waits for the others to announce it too. An attempt
// before a quorum has freed the key would fail.
const noticeGrace = 10 * time.Millisecond

// notices listens for announced releases on one connection a node, which it opens, and opens again, only while something
// waits. Announcements are hints: they may be lost, and nothing but the time of an attempt depends on them.
type notices struct {
	q *Quorum

	mu        sync.Mutex
	listeners []*listener       // guarded by mu; one a node, empty until something waits
	topics    map[string]*topic // guarded by mu; by channel
}

// topic is a channel that somebody watches.
type topic struct {
	watches   map[*watch]struct{}
	listening map[int]bool // nodes that confirmed the subscription
}

// watch is one waiter's interest in a channel.
type watch struct {
	n       *notices
	channel string
	wake    chan wakeUp // capacity 1; receives when it is worth to try

	// guarded by notices.mu
	owner string // the owner value of the release being counted
	seen  int    // nodes that announced it
	grace *time.Timer
}

// wakeUp tells a waiter to try.
type wakeUp struct {
	released bool          // the holder has released the key; if not, it may have, unheard
	freeIn   time.Duration // until the key is free: what is left of a minimum hold
}

func newNotices(q *Quorum) *notices {
	return &notices{q: q, topics: make(map[string]*topic)}
}

// watch starts listening. The watch wakes once when a quorum of nodes listens (what was announced before then is
// not heard), and then for each release. Stop it when done.
func (ns *notices) watch(channel string) *watch {
	w := &watch{n: ns, channel: channel, wake: make(chan wakeUp, 1)}
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.listeners == nil {
		ns.start()
	}
	t := ns.topics[channel]
	if t == nil {
		t = &topic{watches: make(map[*watch]struct{}), listening: make(map[int]bool)}
		ns.topics[channel] = t
		ns.announce(channel)
	} else if len(t.listening) >= ns.q.need {
		w.push(wakeUp{})
	}
	t.watches[w] = struct{}{}
	return w
}

// start makes the listeners, unless the Quorum is closed, which waits for them. Called with mu held.
func (ns *notices) start() {
	ns.q.mu.Lock()
	defer ns.q.mu.Unlock()
	if ns.q.closed {
		return
	}
	for _, n := range ns.q.nodes {
		l := &listener{ns: ns, node: n, changed: make(chan struct{}, 1)}
		ns.listeners = append(ns.listeners, l)
		ns.q.work.Go(l.run)
	}
}

// announce tells the listeners that a channel's state changed. Called with mu held.
func (ns *notices) announce(channel string) {
	for _, l := range ns.listeners {
		l.todo = append(l.todo, channel)
		select {
		case l.changed <- struct{}{}:
		default:
		}
	}
}

func (w *watch) stop() {
	w.n.mu.Lock()
	defer w.n.mu.Unlock()
	if w.grace != nil {
		w.grace.Stop()
	}
	t := w.n.topics[w.channel]
	delete(t.watches, w)
	if len(t.watches) == 0 {
		delete(w.n.topics, w.channel)
		w.n.announce(w.channel)
	}
}

func (w *watch) push(u wakeUp) {
	select {
	case w.wake <- u:
	default:
	}
}

// confirmed notes that a node listens on a channel.
func (ns *notices) confirmed(node int, channel string) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	t := ns.topics[channel]
	if t == nil || t.listening[node] {
		return
	}
	t.listening[node] = true
	if len(t.listening) == ns.q.need {
		for w := range t.watches {
			w.push(wakeUp{})
		}
	}
}

// deaf notes that a node's connection is gone. The next one begins with everything that is watched.
func (ns *notices) deaf(l *listener) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	l.todo = nil
	for _, t := range ns.topics {
		delete(t.listening, l.node.index)
	}
}

// heard counts a node's announcement of a release. A quorum of them wakes the channel's watches, or the first
// one after a grace.
func (ns *notices) heard(m valkey.PubSubMessage) {
	ms, owner, ok := strings.Cut(m.Message, " ")
	n, err := strconv.ParseInt(ms, 10, 64)
	if !ok || err != nil || n < 0 || n > noExpiry.Milliseconds() {
		return // nobody's release: a minimum hold is below the TTL
	}
	until := time.Duration(n) * time.Millisecond
	ns.mu.Lock()
	defer ns.mu.Unlock()
	t := ns.topics[m.Channel]
	if t == nil {
		return
	}
	for w := range t.watches {
		w.count(owner, until, ns.q.need)
	}
}

// count is called with notices.mu held.
func (w *watch) count(owner string, until time.Duration, need int) {
	if owner != w.owner {
		w.owner, w.seen = owner, 0
		if w.grace != nil {
			w.grace.Stop()
		}
		w.grace = time.AfterFunc(noticeGrace, func() { w.push(wakeUp{released: true, freeIn: max(until-noticeGrace, 0)}) })
	}
	if w.seen++; w.seen == need {
		w.grace.Stop()
		w.push(wakeUp{released: true, freeIn: until})
	}
}

// listener keeps one node's subscriptions.
type listener struct {
	ns      *notices
	node    *node
	changed chan struct{} // capacity 1
	todo    []string      // guarded by notices.mu; channels whose state changed
}

// run listens until the Quorum is closed, reconnecting with a pause while something waits.
func (l *listener) run() {
	q := l.ns.q
	pause := q.cfg.retryMin
	for {
		for !l.awaited() {
			select {
			case <-l.changed:
			case <-q.done:
				return
			}
		}
		if client := l.node.client.Load(); client != nil && l.listen(*client) {
			pause = q.cfg.retryMin
		}
		l.ns.deaf(l)
		timer := time.NewTimer(fullJitter(pause))
		pause = min(2*pause, q.cfg.retryMax)
		select {
		case <-q.done:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

var errNotListening = errors.New("not listening")

// awaited reports whether anything is watched.
func (l *listener) awaited() bool {
	l.ns.mu.Lock()
	defer l.ns.mu.Unlock()
	if len(l.ns.topics) == 0 {
		l.todo = nil
		return false
	}
	return true
}

// connect takes a connection.
func (l *listener) connect(client valkey.Client) (valkey.DedicatedClient, error) {
	ctx, cancel := context.WithTimeout(context.Background(), l.node.timeout)
	defer cancel()
	return l.node.hearing.dedicate(ctx, client)
}

// listen subscribes to everything that is watched and follows the changes until the connection breaks or the
// Quorum is closed. It reports whether the node answered at all.
func (l *listener) listen(client valkey.Client) (worked bool) {
	conn, err := l.connect(client)
	if err != nil {
		return false
	}
	defer conn.Close()
	broken := conn.SetPubSubHooks(valkey.PubSubHooks{OnMessage: l.ns.heard})
	subscribed := make(map[string]bool)
	want := l.everything()
	for {
		answered, err := l.adjust(conn, subscribed, want)
		if worked = worked || answered; err != nil {
			return worked
		}
		select {
		case <-l.changed:
			want = l.changes()
		case <-broken:
			return worked
		case <-l.ns.q.done:
			return worked
		}
	}
}

// everything returns all watched channels and forgets the list of changes.
func (l *listener) everything() map[string]bool {
	l.ns.mu.Lock()
	defer l.ns.mu.Unlock()
	l.todo = nil
	want := make(map[string]bool, len(l.ns.topics))
	for channel := range l.ns.topics {
		want[channel] = true
	}
	return want
}

// changes returns the channels that changed, and whether they are watched now.
func (l *listener) changes() map[string]bool {
	l.ns.mu.Lock()
	defer l.ns.mu.Unlock()
	want := make(map[string]bool, len(l.todo))
	for _, channel := range l.todo {
		_, want[channel] = l.ns.topics[channel]
	}
	l.todo = nil
	return want
}

// adjust subscribes and unsubscribes, and reports whether the node answered anything.
func (l *listener) adjust(conn valkey.DedicatedClient, subscribed, want map[string]bool) (answered bool, err error) {
	var add, drop []string
	for channel, watched := range want {
		switch {
		case watched && !subscribed[channel]:
			add = append(add, channel)
		case !watched && subscribed[channel]:
			drop = append(drop, channel)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.node.timeout)
	defer cancel()
	if len(add) > 0 {
		if err := conn.Do(ctx, conn.B().Subscribe().Channel(add...).Build()).Error(); err != nil {
			return answered, errors.Join(errNotListening, err)
		}
		answered = true
	}
	if len(drop) > 0 {
		if err := conn.Do(ctx, conn.B().Unsubscribe().Channel(drop...).Build()).Error(); err != nil {
			return answered, errors.Join(errNotListening, err)
		}
		answered = true
	}
	for _, channel := range drop {
		delete(subscribed, channel)
	}
	for channel, watched := range want {
		if watched {
			subscribed[channel] = true
			l.ns.confirmed(l.node.index, channel)
		}
	}
	return answered, nil
}
