package resp

import (
	"cmp"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
)

// Conn is a guarded connection. One goroutine may read and one may write at the same time.
type Conn struct {
	net.Conn

	mu      sync.Mutex
	owed    owed     // guarded by mu
	out     commands // guarded by mu
	refused error    // guarded by mu; why the connection was ended

	in replies // belongs to the reading goroutine
}

// Guard guards a new connection. Nothing may have been read from it or written to it before.
func Guard(conn net.Conn) *Conn { return &Conn{Conn: conn} }

// Read returns whole messages that were checked. From the first refused message on it returns an
// *Error.
func (c *Conn) Read(b []byte) (int, error) {
	for {
		if n := c.in.pass(b); n > 0 {
			return n, nil
		}
		if err := c.refusal(); err != nil {
			return 0, err
		}
		n, err := c.Conn.Read(c.in.space())
		if err = c.came(n, err); err != nil && c.in.whole == 0 {
			return 0, err
		}
	}
}

// came takes n bytes and the error of a read. A connection that ends right after a first reply that
// was an error is refused with the text of that error.
func (c *Conn) came(n int, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wrong := c.in.came(n, &c.owed); wrong != nil {
		c.refused = wrong
	} else if err != nil && c.owed.count == 1 && c.owed.said != "" && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, net.ErrClosed) {
		c.refused = &Error{What: "it ended the connection", Said: c.owed.said}
	}
	return cmp.Or(c.refused, err)
}

// Write sends commands. It returns an *Error for anything else. If the other end has ended the
// connection before its first reply, Write returns the alert of TLS that says why, if there is one.
// It reads for that, so until the first reply nobody else may read meanwhile: valkey-go writes its
// first commands, and reads then.
func (c *Conn) Write(b []byte) (int, error) {
	c.mu.Lock()
	err, first := c.refused, c.owed.count == 0
	if err == nil {
		if wrong := c.out.scan(b, &c.owed); wrong != nil {
			err, c.refused = wrong, wrong
		}
	}
	c.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	if first && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) {
		_, why := c.Conn.Read(make([]byte, 1)) // the kernel keeps what came before the end
		if alert := (*net.OpError)(nil); errors.As(why, &alert) && alert.Op == "remote error" {
			err = why
		}
	}
	return n, err
}

func (c *Conn) refusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refused
}
