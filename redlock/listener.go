package redlock

import (
	"context"
	"time"

	"github.com/valkey-io/valkey-go"
)

// listener keeps the subscription to one node.
type listener struct {
	calls  *calls
	node   *node
	wanted chan struct{} // capacity 1; somebody waits
}

func (l *listener) signal() {
	select {
	case l.wanted <- struct{}{}:
	default:
	}
}

// run listens until the Quorum is closed, from the first time somebody waits, and reconnects with a pause while somebody does.
func (l *listener) run() {
	q := l.calls.q
	pause := minRetryPause
	for {
		for !l.calls.awaited() {
			select {
			case <-l.wanted:
			case <-q.done:
				return
			}
		}
		if client := l.node.client.Load(); client != nil && l.listen(*client) {
			pause = minRetryPause
		}
		l.calls.deaf(l.node.index)
		timer := time.NewTimer(fullJitter(pause))
		pause = min(2*pause, maxRetryPause)
		select {
		case <-q.done:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// listen subscribes and hears calls until the connection breaks or the Quorum is closed. It reports whether the node answered at all.
func (l *listener) listen(client valkey.Client) (worked bool) {
	conn, err := l.connect(client)
	if err != nil {
		return false
	}
	defer conn.Close()
	broken := conn.SetPubSubHooks(valkey.PubSubHooks{OnMessage: l.calls.receive})
	if err := l.subscribe(conn); err != nil {
		return false
	}
	l.calls.confirmed(l.node.index)
	select {
	case <-broken:
	case <-l.calls.q.done:
	}
	return true
}

// connect takes a connection.
func (l *listener) connect(client valkey.Client) (valkey.DedicatedClient, error) {
	ctx, cancel := context.WithTimeout(context.Background(), l.node.timeout)
	defer cancel()
	return l.node.hearing.dedicate(ctx, client)
}

func (l *listener) subscribe(conn valkey.DedicatedClient) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.node.timeout)
	defer cancel()
	return conn.Do(ctx, conn.B().Subscribe().Channel(l.calls.channel).Build()).Error()
}
