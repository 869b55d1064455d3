package redlocktest

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// socketBuffer is how much one direction of a pipe connection holds before a
// write blocks. It is in the order of what Linux gives a loopback socket.
const socketBuffer = 256 << 10

// socket is one end of an in-memory connection that behaves like TCP where
// [net.Pipe] does not: a write succeeds without a reader, and what was written
// before a Close can still be read. It uses nothing but a mutex, conditions and
// timers, so it works in a synctest bubble.
type socket struct {
	in, out       *stream
	local, remote addr
}

// newSockets returns both ends of a connection to server.
func newSockets(remote addr) (client, server *socket) {
	up, down := newStream(), newStream()
	local := addr{network: remote.network, text: "client"}
	return &socket{in: down, out: up, local: local, remote: remote},
		&socket{in: up, out: down, local: remote, remote: local}
}

func (s *socket) Read(b []byte) (int, error) {
	n, err := s.in.read(b)
	return n, s.wrap("read", err)
}

func (s *socket) Write(b []byte) (int, error) {
	n, err := s.out.write(b)
	return n, s.wrap("write", err)
}

// Close ends both directions. What the other end has not read yet stays
// readable. Idempotent.
func (s *socket) Close() error {
	s.in.closeReader()
	s.out.closeWriter()
	return nil
}

func (s *socket) LocalAddr() net.Addr  { return s.local }
func (s *socket) RemoteAddr() net.Addr { return s.remote }

func (s *socket) SetDeadline(t time.Time) error {
	s.in.setReadDeadline(t)
	s.out.setWriteDeadline(t)
	return nil
}

func (s *socket) SetReadDeadline(t time.Time) error {
	s.in.setReadDeadline(t)
	return nil
}

func (s *socket) SetWriteDeadline(t time.Time) error {
	s.out.setWriteDeadline(t)
	return nil
}

// wrap gives an error the shape that TCP errors have. io.EOF stays bare.
func (s *socket) wrap(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: s.local.network, Source: s.local, Addr: s.remote, Err: err}
}

// stream is one direction of a connection.
type stream struct {
	mu     sync.Mutex
	change *sync.Cond // on mu: any field below has changed
	// guarded by mu
	data         []byte
	writerClosed bool
	readerClosed bool
	readBy       time.Time
	writeBy      time.Time
}

func newStream() *stream {
	s := &stream{}
	s.change = sync.NewCond(&s.mu)
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.readerClosed:
			return 0, net.ErrClosed
		case expired(s.readBy):
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case len(s.data) > 0:
			n := copy(b, s.data)
			s.data = s.data[n:]
			s.change.Broadcast()
			return n, nil
		case s.writerClosed:
			return 0, io.EOF
		}
		s.wait(s.readBy)
	}
}

func (s *stream) write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	written := 0
	for {
		switch {
		case s.writerClosed:
			return written, net.ErrClosed
		case expired(s.writeBy):
			return written, os.ErrDeadlineExceeded
		case s.readerClosed:
			return written, os.NewSyscallError("write", syscall.EPIPE)
		}
		if n := min(len(b)-written, socketBuffer-len(s.data)); n > 0 {
			s.data = append(s.data, b[written:written+n]...)
			written += n
			s.change.Broadcast()
		}
		if written == len(b) {
			return written, nil
		}
		s.wait(s.writeBy)
	}
}

// wait blocks until the stream changes or the deadline passes. The caller holds
// mu and checks its condition again.
func (s *stream) wait(deadline time.Time) {
	if deadline.IsZero() {
		s.change.Wait()
		return
	}
	timer := time.AfterFunc(time.Until(deadline), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.change.Broadcast()
	})
	defer timer.Stop()
	s.change.Wait()
}

func (s *stream) closeReader() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readerClosed = true
	s.data = nil
	s.change.Broadcast()
}

func (s *stream) closeWriter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writerClosed = true
	s.change.Broadcast()
}

func (s *stream) setReadDeadline(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readBy = t
	s.change.Broadcast()
}

func (s *stream) setWriteDeadline(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeBy = t
	s.change.Broadcast()
}

func expired(deadline time.Time) bool {
	return !deadline.IsZero() && !time.Now().Before(deadline)
}
