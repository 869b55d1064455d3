package resp

import (
	"errors"
	"net"
	"os"
	"sync"
)

// Conn is a guarded connection. As with the one under it, one goroutine may read and one may write
// at the same time.
type Conn struct {
	net.Conn

	mu      sync.Mutex
	owed    owed    // guarded by mu
	in      replies // guarded by mu
	out     commands
	refused error // guarded by mu; why the connection is over
}

// Guard guards a new connection: nothing may have been read from or written to it.
func Guard(conn net.Conn) *Conn { return &Conn{Conn: conn} }

// Read returns what came, up to where it is refused; from then on an *Error.
func (c *Conn) Read(b []byte) (int, error) {
	if err := c.refusal(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	good, wrong := c.in.scan(b[:n], &c.owed)
	switch {
	case wrong != nil:
		c.refused = wrong
		if good > 0 {
			return good, nil
		}
		return 0, wrong
	case err != nil && c.in.lastWords != "" && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed):
		c.refused = &Error{What: "it ended the connection", Said: c.in.lastWords}
		return n, c.refused
	}
	return n, err
}

// Write sends commands. What is not a command is an *Error too.
func (c *Conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	err := c.refused
	if err == nil {
		if wrong := c.out.scan(b, &c.owed); wrong != nil {
			err, c.refused = wrong, wrong
		}
	}
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *Conn) refusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}
