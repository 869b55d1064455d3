package node

import (
	"context"
	"time"
)

// timeLimit makes contexts that end after a time, one after the other in the same memory:
// context.WithTimeout makes four objects each time, and a batch is sent with each acquisition. The
// zero value is ready. It is not safe for concurrent use.
type timeLimit struct {
	*limit
}

type limit struct {
	at    time.Time
	done  chan struct{}
	timer *time.Timer
}

// start returns a context that ends after d. It must not be used after stop.
func (t *timeLimit) start(d time.Duration) context.Context {
	at := time.Now().Add(d)
	if t.limit == nil {
		l := &limit{at: at, done: make(chan struct{})}
		l.timer = time.AfterFunc(d, func() { close(l.done) })
		t.limit = l
		return l
	}
	t.at = at
	t.timer.Reset(d)
	return t.limit
}

// stop ends the use of the context. A context that has run out is not made again, because something
// may still have it.
func (t *timeLimit) stop() {
	if !t.timer.Stop() {
		t.limit = nil
	}
}

func (l *limit) Deadline() (time.Time, bool) { return l.at, true }
func (l *limit) Done() <-chan struct{}       { return l.done }
func (l *limit) Value(any) any               { return nil }

func (l *limit) Err() error {
	select {
	case <-l.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
