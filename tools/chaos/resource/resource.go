// Package resource is what the leases of the chaos program protect: it takes writes that carry a
// fencing token, and refuses one that is smaller than the largest it has seen for the key.
package resource

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/tools/harness/history"
)

// Write is one write that reached the resource.
type Write struct {
	At       history.Instant `json:"t"` // when it was decided
	Key      string          `json:"key"`
	Token    uint64          `json:"token"`
	Lease    string          `json:"l"`
	Accepted bool            `json:"ok"`
}

// Server accepts writes on a loopback port. It is safe for concurrent use.
type Server struct {
	listener net.Listener
	journal  *history.Writer
	serving  sync.WaitGroup

	mu    sync.Mutex
	last  map[string]Write      // guarded by mu; the last accepted write of each key
	conns map[net.Conn]struct{} // guarded by mu
	ended bool                  // guarded by mu
	err   error                 // guarded by mu; of the journal
}

// Serve starts a resource that keeps what it decided in a journal.
func Serve(j *history.Writer) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("resource: %w", err)
	}
	s := &Server{listener: l, journal: j, last: make(map[string]Write), conns: make(map[net.Conn]struct{})}
	s.serving.Go(s.accept)
	return s, nil
}

// Addr is where it listens.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Holder returns the lease whose write to the key was accepted last, and an empty text if there was
// none.
func (s *Server) Holder(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[key].Lease
}

// Close ends it and returns the first error of its journal.
func (s *Server) Close() error {
	s.listener.Close()
	s.mu.Lock()
	s.ended = true
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.serving.Wait()
	return s.err
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.ended {
			c.Close()
		} else {
			s.conns[c] = struct{}{}
			s.serving.Go(func() { s.serve(c) })
		}
		s.mu.Unlock()
	}
}

// serve answers the lines of one client. A client that was killed leaves half a line at worst,
// which is no write.
func (s *Server) serve(c net.Conn) {
	defer func() {
		c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	for r := bufio.NewReader(c); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		var w Write
		if _, err := fmt.Sscan(line, &w.Lease, &w.Key, &w.Token); err != nil {
			return
		}
		answer := "refused\n"
		if s.decide(&w) {
			answer = "accepted\n"
		}
		if _, err := c.Write([]byte(answer)); err != nil {
			return
		}
	}
}

func (s *Server) decide(w *Write) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.At = history.Now()
	w.Accepted = w.Token >= s.last[w.Key].Token
	if w.Accepted {
		s.last[w.Key] = *w
	}
	if err := s.journal.Append(*w); err != nil && s.err == nil {
		s.err = err
	}
	return w.Accepted
}

// Conn is a client's connection to the resource. It is for one goroutine.
type Conn struct {
	conn net.Conn
	r    *bufio.Reader
}

// Dial connects.
func Dial(addr string) (*Conn, error) {
	c, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		return nil, fmt.Errorf("resource: %w", err)
	}
	return &Conn{conn: c, r: bufio.NewReader(c)}, nil
}

// Write asks the resource to take a write of a lease, and reports whether it did. Neither text may
// contain spaces.
func (c *Conn) Write(lease, key string, token uint64) (accepted bool, err error) {
	if _, err := fmt.Fprintf(c.conn, "%s %s %d\n", lease, key, token); err != nil {
		return false, fmt.Errorf("resource: %w", err)
	}
	answer, err := c.r.ReadString('\n')
	if err != nil {
		return false, fmt.Errorf("resource: %w", err)
	}
	return strings.HasPrefix(answer, "accepted"), nil
}

// Close ends the connection.
func (c *Conn) Close() error { return c.conn.Close() }
