package redlock_test

import (
	"context"
	"crypto/tls"

	"net"
	"sync"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// hole is a connection that swallows what is written after it was cut, as behind a firewall that
// forgot it.
type hole struct {
	net.Conn
	mu          sync.Mutex
	cut, closed bool
}

func (h *hole) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return h.Conn.Close()
}

func (h *hole) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cut && !h.closed {
		return len(b), nil
	}
	return h.Conn.Write(b)
}

// holes makes connections that can be cut together.
type holes struct {
	mu    sync.Mutex
	conns []*hole
}

func (h *holes) option(fleet *redlocktest.Fleet) redlock.Option {
	return redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
		fleet.ClientOption(url, o)
		dial := o.DialCtxFn
		o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
			conn, err := dial(ctx, addr, d, c)
			if err != nil {
				return nil, err
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			h.conns = append(h.conns, &hole{Conn: conn})
			return h.conns[len(h.conns)-1], nil
		}
	})
}

func (h *holes) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.conns {
		c.mu.Lock()
		c.cut = true
		c.mu.Unlock()
	}
}
