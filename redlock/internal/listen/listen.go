// Package listen hears what the nodes publish, on a connection of its own to each.
//
// A message is a hint: it may be lost, come twice, or come from any client that may publish. The
// receiver must find out the truth by other means.
package listen

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/node"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// Listener listens to nodes. It makes their clients with the first subscription. It is safe for
// concurrent use.
//
// A node is never asked to end a subscription: there are a few channels, each of which may be heard
// again. Messages that nobody hears any more are dropped.
type Listener struct {
	clients []func() *node.Lasting // each makes its client when it is called first
	timeout time.Duration
	life    context.Context
	end     context.CancelFunc

	mu   sync.Mutex
	work sync.WaitGroup // added to with mu held, before the end of life
}

// ErrLost: the messages of a node have ended.
var ErrLost = errors.New("the connection has ended")

// New makes a Listener without subscriptions. connect makes the client of a node, which ends with
// the context, see node.NewLasting. A connection on which a subscription has no answer within the
// timeout is cut.
func New(nodes int, timeout time.Duration, connect func(ctx context.Context, node int) *node.Lasting) *Listener {
	l := &Listener{timeout: timeout}
	l.life, l.end = context.WithCancel(context.Background())
	for i := range nodes {
		l.clients = append(l.clients, sync.OnceValue(func() *node.Lasting { return connect(l.life, i) }))
	}
	return l
}

// Close ends all connections. It does not wait, see Wait.
func (l *Listener) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// Wait waits until nothing is heard any more, after a Close.
func (l *Listener) Wait() { l.work.Wait() }

// Subscribe makes a subscription, which the caller ends, or Close. Messages that are under way may
// still be heard then.
//
// heard is called with each message, and changed with the outcome of the subscription on each node:
// with nil before the node's first message, with ErrLost when the node's messages end after that,
// and with the node's error if it refuses the subscription. Both are called concurrently for
// different nodes, in order for one node, and must not block. changed may be nil.
func (l *Listener) Subscribe(channel string, heard func(node int, message string), changed func(node int, err error)) (end func()) {
	if changed == nil {
		changed = func(int, error) {}
	}
	ctx, end := context.WithCancel(l.life)
	for i := range l.clients {
		l.later(func() { l.hear(ctx, i, channel, heard, changed) })
	}
	return end
}

// later runs f in the background, unless the Listener is closed.
func (l *Listener) later(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.Err() == nil {
		l.work.Go(f)
	}
}

// retryEvery is the time until a channel that a node has refused is asked for again, unless the
// connection ends before. A new connection would be refused the same, and costs a server more.
const retryEvery = time.Minute

// hear hears a channel of a node until ctx ends. If the connection breaks, it subscribes again, on
// a new one, after a pause.
func (l *Listener) hear(ctx context.Context, i int, channel string, heard func(int, string), changed func(int, error)) {
	client, pause := l.clients[i](), node.MinPause
	for ctx.Err() == nil {
		var taken atomic.Bool
		begins := sync.OnceFunc(func() { changed(i, nil) })
		confirmed := valkey.WithOnSubscriptionHook(ctx, func(valkey.PubSubSubscription) { // called with a lock of valkey-go held
			taken.Store(true)
			l.later(begins)
		})
		began := time.Now()
		late := time.AfterFunc(l.timeout, func() {
			if !taken.Load() {
				client.Cut()
			}
		})
		err := client.Receive(confirmed, client.B().Subscribe().Channel(channel).Build(), func(m valkey.PubSubMessage) {
			begins()
			heard(i, m.Message)
		})
		late.Stop()
		if ctx.Err() != nil {
			return
		}
		switch {
		case taken.Load():
			begins()
			changed(i, ErrLost)
		case wire.FaultOf(err).IsAny(wire.NoPermission, wire.NoCommand):
			changed(i, err)
			select {
			case <-ctx.Done():
			case <-client.Broken():
			case <-time.After(retryEvery):
			}
		}
		if time.Since(began) > node.MaxPause { // a shorter one may have ended for a reason that ends the next one, too
			pause = node.MinPause
		}
		wait := time.Duration(rand.Int64N(int64(pause) + 1))
		pause = min(2*pause, node.MaxPause)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}
