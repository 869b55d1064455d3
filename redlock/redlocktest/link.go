package redlocktest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// link is the server's end of a connection. Its Write never blocks: answers
// queue until they are due and the process is not frozen. So miniredis, which
// publishes with its lock held, never waits for a client that does not read.
// What a client sends queues too, as in the buffers of a kernel: a pipe has none.
type link struct {
	net.Conn
	proc *process
	came chan []byte   // what the client has sent; closed at its end
	rest []byte        // what Read has taken from came, and not returned yet
	gone chan struct{} // closed when nobody will take from came any more

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

// unread is how many writes of a client may wait for the server. More of them block the client.
const unread = 1024

func newLink(conn net.Conn, p *process) *link {
	return &link{Conn: conn, proc: p, came: make(chan []byte, unread), gone: make(chan struct{})}
}

// take takes what the client sends, until the client or the link ends.
func (l *link) take() {
	defer close(l.came)
	buffer := make([]byte, 16<<10)
	for {
		n, err := l.Conn.Read(buffer)
		if n > 0 {
			select {
			case l.came <- bytes.Clone(buffer[:n]):
			case <-l.gone:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Read returns what the client has sent, also if the client has closed its connection by then.
func (l *link) Read(b []byte) (int, error) {
	for len(l.rest) == 0 {
		var more bool
		if l.rest, more = <-l.came; !more {
			return 0, io.EOF
		}
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
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
	close(l.gone)
	l.proc.mu.Lock()
	defer l.proc.mu.Unlock()
	l.broken = true
	l.queue = nil
	delete(l.proc.links, l)
}

// pipeEnd is the client's end of a connection without a network. A write to a server that is gone
// fails as over TCP.
type pipeEnd struct {
	net.Conn
	node addr
}

func (e pipeEnd) RemoteAddr() net.Addr { return e.node }

func (e pipeEnd) Write(b []byte) (int, error) {
	n, err := e.Conn.Write(b)
	if errors.Is(err, io.ErrClosedPipe) {
		err = &net.OpError{Op: "write", Net: e.node.network, Addr: e.node, Err: os.NewSyscallError("write", syscall.EPIPE)}
	}
	return n, err
}
