package rival

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"sync/atomic"

	"github.com/valkey-io/valkey-go"
)

// Sent counts the commands that a Rival's connections send. A command counts once, whatever it
// makes a server do; a server's own statistics also count what a script calls. Handshakes count.
// Sent is safe for concurrent use.
type Sent struct{ commands atomic.Int64 }

// Commands returns the number of commands so far.
func (s *Sent) Commands() int64 { return s.commands.Load() }

// dialer has valkey-go's connections count their commands. It does nothing if s is nil.
func (s *Sent) dialer(o *valkey.ClientOption) {
	if s == nil {
		return
	}
	o.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return s.count(d.DialContext(ctx, "tcp", address))
	}
}

func (s *Sent) count(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	return &sentConn{Conn: conn, sent: s}, nil
}

// sentConn counts the commands in what is written. A command is an array of bulk strings (RESP):
// "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".
type sentConn struct {
	net.Conn
	sent *Sent
	line []byte // the part of a header that has been written
	skip int    // bytes of a bulk string, and its end, that are still to come
}

// Write is called by one goroutine at a time, as clients call it.
func (c *sentConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.read(p[:n])
	return n, err
}

func (c *sentConn) read(p []byte) {
	for len(p) > 0 {
		if c.skip > 0 {
			n := min(c.skip, len(p))
			c.skip, p = c.skip-n, p[n:]
			continue
		}
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			c.line = append(c.line, p...)
			return
		}
		c.line, p = append(c.line, p[:end]...), p[end+1:]
		switch c.line[0] {
		case '*':
			c.sent.commands.Add(1)
		case '$':
			if n, err := strconv.Atoi(string(bytes.TrimRight(c.line[1:], "\r"))); err == nil {
				c.skip = n + len("\r\n")
			}
		}
		c.line = c.line[:0]
	}
}
