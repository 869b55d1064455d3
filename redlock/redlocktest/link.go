package redlocktest

import (
	"bytes"
	"net"
	"time"
)

// link is the server's end of a connection. Its Write never blocks: answers
// queue until they are due and the process is not frozen. So miniredis, which
// publishes with its lock held, never waits for a client that does not read.
type link struct {
	net.Conn
	proc *process

	// guarded by proc.mu
	queue  []answer
	closed bool // by the server: close when the queue is empty
	broken bool // the client is gone: drop the queue
}

// answer is one write of the server, to be sent at due.
type answer struct {
	data []byte
	due  time.Time
}

// Write queues b.
func (l *link) Write(b []byte) (int, error) {
	due := time.Now().Add(time.Duration(max(0, l.proc.node.delay.Load())))
	l.proc.mu.Lock()
	defer l.proc.mu.Unlock()
	if l.closed || l.broken || l.proc.dead {
		return 0, net.ErrClosed
	}
	l.queue = append(l.queue, answer{data: bytes.Clone(b), due: due})
	l.proc.turn.Broadcast()
	return len(b), nil
}

// Close has the queue sent before the connection is closed, and does not wait for that.
func (l *link) Close() error {
	l.proc.mu.Lock()
	defer l.proc.mu.Unlock()
	l.closed = true
	l.proc.turn.Broadcast()
	return nil
}

// pump sends the queue until the link is closed or the process is killed.
func (l *link) pump() {
	defer l.finish()
	for {
		data, ok := l.next()
		if !ok {
			return
		}
		if _, err := l.Conn.Write(data); err != nil {
			return
		}
	}
}

// next waits for the answer whose turn it is.
func (l *link) next() ([]byte, bool) {
	l.proc.mu.Lock()
	defer l.proc.mu.Unlock()
	for {
		switch {
		case l.proc.dead:
			return nil, false
		case l.proc.frozen:
			l.proc.turn.Wait()
		case len(l.queue) > 0:
			wait := time.Until(l.queue[0].due)
			if wait <= 0 {
				data := l.queue[0].data
				l.queue = l.queue[1:]
				return data, true
			}
			timer := time.AfterFunc(wait, l.proc.wake)
			l.proc.turn.Wait()
			timer.Stop()
		case l.closed:
			return nil, false
		default:
			l.proc.turn.Wait()
		}
	}
}

func (l *link) finish() {
	l.Conn.Close()
	l.proc.mu.Lock()
	defer l.proc.mu.Unlock()
	l.broken = true
	l.queue = nil
	delete(l.proc.links, l)
}
