package waitqueue

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock/internal/node"
)

// subscriber keeps the subscription to one node.
type subscriber struct {
	queue  *Queue
	index  int
	node   Node
	wanted chan struct{} // capacity 1; somebody waits
}

func (s *subscriber) signal() {
	select {
	case s.wanted <- struct{}{}:
	default:
	}
}

// run listens until the queue is closed, from the first time somebody waits, and reconnects with a
// pause while somebody does.
func (s *subscriber) run() {
	pause := node.MinPause
	for {
		for !s.queue.awaited() {
			select {
			case <-s.wanted:
			case <-s.queue.done:
				return
			}
		}
		if s.listen() {
			pause = node.MinPause
		}
		s.queue.lost(s.index)
		timer := time.NewTimer(time.Duration(rand.Int64N(int64(pause) + 1)))
		pause = min(2*pause, node.MaxPause)
		select {
		case <-s.queue.done:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// listen subscribes and hears calls until the connection breaks or the queue is closed. It reports
// whether the node answered at all.
func (s *subscriber) listen() (worked bool) {
	conn, err := s.connect()
	if err != nil {
		return false
	}
	defer conn.Close()
	broken := conn.SetPubSubHooks(valkey.PubSubHooks{OnMessage: s.queue.receive})
	err = s.subscribe(conn)
	s.queue.cfg.Subscribed(s.index, err)
	if err != nil {
		return false
	}
	s.queue.confirmed(s.index)
	select {
	case <-broken:
	case <-s.queue.done:
	}
	return true
}

// connect takes a connection.
func (s *subscriber) connect() (valkey.DedicatedClient, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.queue.cfg.Timeout)
	defer cancel()
	return s.node.Dedicate(ctx)
}

func (s *subscriber) subscribe(conn valkey.DedicatedClient) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.queue.cfg.Timeout)
	defer cancel()
	return conn.Do(ctx, conn.B().Subscribe().Channel(s.queue.channel).Build()).Error()
}
