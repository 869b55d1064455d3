package redlock

import (
	"context"
	"errors"
	"time"

	"github.com/valkey-io/valkey-go"
)

// listener keeps the subscription to one node.
type listener struct {
	calls  *calls
	node   *node
	wanted chan struct{}   // capacity 1; somebody waits
	said   *ConditionError // what was logged of the node
}

func (l *listener) signal() {
	select {
	case l.wanted <- struct{}{}:
	default:
	}
}

// run listens until the Quorum is closed, from the first time somebody waits, and reconnects with a
// pause while somebody does.
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

// listen subscribes and hears calls until the connection breaks or the Quorum is closed. It reports
// whether the node answered at all.
func (l *listener) listen(client valkey.Client) (worked bool) {
	conn, err := l.connect(client)
	if err != nil {
		return false
	}
	defer conn.Close()
	broken := conn.SetPubSubHooks(valkey.PubSubHooks{OnMessage: l.calls.receive})
	err = l.subscribe(conn)
	l.heard(err)
	if err != nil {
		return false
	}
	l.calls.confirmed(l.node.index)
	select {
	case <-broken:
	case <-l.calls.q.done:
	}
	return true
}

// heard keeps why the node refuses the subscription, and logs it unless the node's trial has said
// as much.
func (l *listener) heard(err error) {
	var is *ConditionError
	if isServerError(err) && !errors.As(diagnose(err), &is) {
		is = &ConditionError{Condition: ConditionUnsupported, Err: err}
	}
	if is != nil {
		is.Detail = slowHandOvers + ": SUBSCRIBE: " + is.Err.Error()
	}
	l.node.unheard.Store(is)
	if is == nil || l.node.gate.status.Load().lacks == nil {
		l.node.logLacks(l.said, is)
		l.said = is
	}
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
