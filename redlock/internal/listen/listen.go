// Package listen hears what the nodes publish, on a connection of its own to each.
//
// A message is a hint: it may be lost, come twice, or come from any client that may publish. The
// receiver must find out the truth by other means.
package listen

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Config is what a Listener is made of.
type Config struct {
	Nodes   int                                                                 // how many there are
	Connect func(ctx context.Context, node int) (valkey.DedicatedClient, error) // makes a connection, which the Listener closes
	Timeout time.Duration                                                       // of a connection and of a subscription
}

// Listener listens to nodes. It opens connections with the first subscription, and opens a broken
// one anew while there are subscriptions. It is safe for concurrent use.
type Listener struct {
	cfg  Config
	done chan struct{} // closed by Close
	work sync.WaitGroup

	mu       sync.Mutex
	closed   bool                       // guarded by mu
	changed  []chan struct{}            // guarded by mu; one a node, of capacity 1; nil before the first subscription
	channels map[string][]*Subscription // guarded by mu
}

// Subscription is the subscription of one hearer to a channel.
type Subscription struct {
	listener *Listener
	channel  string
	heard    func(node int, message string)
	changed  func(node int, err error)
}

// ErrLost: the messages of a node have ended.
var ErrLost = errors.New("the connection has ended")

// New makes a Listener without subscriptions.
func New(cfg Config) *Listener {
	return &Listener{cfg: cfg, done: make(chan struct{}), channels: make(map[string][]*Subscription)}
}

// Close ends all connections. It does not wait, see Wait.
func (l *Listener) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.done)
	}
}

// Wait waits until the connections have ended, after a Close.
func (l *Listener) Wait() { l.work.Wait() }

// Subscribe makes a subscription. The caller ends it with End, or closes the Listener.
//
// heard is called with each message, and changed with the outcome of the subscription on each node:
// with nil before the node's first message, and with ErrLost when the node's messages end after
// that. Both are called concurrently for different nodes, in order for one node, and must not
// block. changed may be nil.
func (l *Listener) Subscribe(channel string, heard func(node int, message string), changed func(node int, err error)) *Subscription {
	l.mu.Lock()
	defer l.mu.Unlock()
	if changed == nil {
		changed = func(int, error) {}
	}
	s := &Subscription{l, channel, heard, changed}
	l.channels[channel] = append(l.channels[channel], s)
	if l.changed == nil && !l.closed {
		for i := range l.cfg.Nodes {
			changed := make(chan struct{}, 1)
			l.changed = append(l.changed, changed)
			l.work.Go(func() { l.keep(i, changed) })
		}
	}
	l.wake()
	return s
}

// End ends the subscription. Messages that are under way may still be heard.
func (s *Subscription) End() {
	l := s.listener
	l.mu.Lock()
	defer l.mu.Unlock()
	left := slices.DeleteFunc(l.channels[s.channel], func(other *Subscription) bool { return other == s })
	if l.channels[s.channel] = left; len(left) == 0 {
		delete(l.channels, s.channel)
	}
	l.wake()
}

// wake has the goroutine of each node look at the subscriptions again. Called with mu held.
func (l *Listener) wake() {
	for _, changed := range l.changed {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}

func (l *Listener) hasSubscriptions() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.channels) > 0
}

// keep keeps a connection to a node until the Listener is closed, and opens it anew, with a pause,
// while there are subscriptions.
func (l *Listener) keep(i int, changed <-chan struct{}) {
	pause := node.MinPause
	for {
		for !l.hasSubscriptions() {
			select {
			case <-changed:
			case <-l.done:
				return
			}
		}
		began := time.Now()
		if l.listen(i, changed); time.Since(began) > node.MaxPause { // a shorter one may have ended for a reason that ends the next one, too
			pause = node.MinPause
		}
		timer := time.NewTimer(time.Duration(rand.Int64N(int64(pause) + 1)))
		pause = min(2*pause, node.MaxPause)
		select {
		case <-l.done:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// retryEvery is the time until a channel that a node has refused is asked for again.
const retryEvery = time.Minute

// listen hears a node until the connection breaks or the Listener is closed. It keeps a connection
// on which the node has refused every subscription: a new connection would be refused the same, and
// costs a server more.
func (l *Listener) listen(i int, changed <-chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.Timeout)
	conn, err := l.cfg.Connect(ctx, i)
	cancel()
	if err != nil {
		return
	}
	defer conn.Close()
	broken := conn.SetPubSubHooks(valkey.PubSubHooks{OnMessage: func(m valkey.PubSubMessage) {
		for _, s := range l.subscribers(m.Channel) {
			s.heard(i, m.Message)
		}
	}})
	heard := make(map[*Subscription]bool) // the subscriptions that the node was asked for, and whether it took them
	defer func() {
		for s, ok := range heard {
			if ok {
				s.changed(i, ErrLost)
			}
		}
	}()
	retry := time.NewTicker(retryEvery)
	defer retry.Stop()
	for again := false; l.subscribe(i, conn, heard, again); {
		select {
		case <-changed:
			again = false
		case <-retry.C:
			again = true
		case <-broken:
			return
		case <-l.done:
			return
		}
	}
}

func (l *Listener) subscribers(channel string) []*Subscription {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.channels[channel])
}

// subscribe makes the node's subscriptions those of the Listener. heard has the subscriptions that
// the node was asked for, and whether it took them; with again it is asked once more for those that
// it refused. subscribe returns false if the connection is of no use any more.
func (l *Listener) subscribe(i int, conn valkey.DedicatedClient, heard map[*Subscription]bool, again bool) bool {
	l.mu.Lock()
	var added []*Subscription
	there := make(map[*Subscription]bool)
	for _, all := range l.channels {
		for _, s := range all {
			there[s] = true
			if ok, asked := heard[s]; !asked || again && !ok {
				added = append(added, s)
			}
		}
	}
	l.mu.Unlock()
	for s, ok := range heard {
		if there[s] {
			continue
		}
		delete(heard, s)
		if ok && len(l.subscribers(s.channel)) == 0 {
			_ = l.do(conn, conn.B().Unsubscribe().Channel(s.channel).Build())
		}
	}
	for _, s := range added {
		err := l.do(conn, conn.B().Subscribe().Channel(s.channel).Build())
		heard[s] = err == nil
		s.changed(i, err)
		if err != nil && !wire.IsServerError(err) {
			return false
		}
	}
	return true
}

func (l *Listener) do(conn valkey.DedicatedClient, cmd valkey.Completed) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.Timeout)
	defer cancel()
	return conn.Do(ctx, cmd).Error()
}
