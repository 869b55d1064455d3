package redlock_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valkey-io/valkey-go"
)

// partition is a network that can be cut and healed, once. While it is cut, what is sent is lost
// and nothing is heard, not even that the other end is gone.
type partition struct {
	cut    atomic.Bool
	healed chan struct{}
}

func newPartition() *partition { return &partition{healed: make(chan struct{})} }

func (p *partition) heal() {
	p.cut.Store(false)
	close(p.healed)
}

// option is for redlock.WithClientOption.
func (p *partition) option(_ string, o *valkey.ClientOption) {
	o.DialCtxFn = p.through(func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", addr)
	})
}

func (p *partition) through(dial dialFunc) dialFunc {
	return func(ctx context.Context, addr string, d *net.Dialer, tc *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, addr, d, tc)
		if err != nil {
			return nil, err
		}
		return &partitionedConn{Conn: conn, p: p, closed: make(chan struct{})}, nil
	}
}

type partitionedConn struct {
	net.Conn
	p      *partition
	once   sync.Once
	closed chan struct{}
	until  atomic.Pointer[time.Time] // read deadline; nil without one
}

// Read keeps what arrives while the network is cut until it is healed, as resending would.
func (c *partitionedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.p.cut.Load() || errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	var late <-chan time.Time
	if until := c.until.Load(); until != nil && !until.IsZero() {
		late = time.After(time.Until(*until))
	}
	select {
	case <-c.p.healed:
		return n, err
	case <-c.closed:
		return 0, net.ErrClosed
	case <-late:
		return 0, os.ErrDeadlineExceeded
	}
}

func (c *partitionedConn) Write(b []byte) (int, error) {
	select {
	case <-c.closed:
		return 0, net.ErrClosed
	default:
	}
	if c.p.cut.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *partitionedConn) SetDeadline(t time.Time) error {
	c.until.Store(&t)
	return c.Conn.SetDeadline(t)
}

func (c *partitionedConn) SetReadDeadline(t time.Time) error {
	c.until.Store(&t)
	return c.Conn.SetReadDeadline(t)
}

func (c *partitionedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
