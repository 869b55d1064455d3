package node

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"

	"github.com/valkey-io/valkey-go"
)

// NewClient makes a client that is connected. It ends with ctx or when it is closed. Then it leaves
// no connection behind, and does not wait for a server. changed is called before it has a new
// connection, and when one has ended; it may be nil.
//
// A client of valkey-go v1.0.79 leaves a connection behind: one that is dialed while the client is
// being closed is stored in its place (mux._pipe after mux.Close), and is never closed.
func NewClient(ctx context.Context, o valkey.ClientOption, changed func()) (valkey.Client, error) {
	ctx, end := context.WithCancel(ctx)
	o.DialCtxFn = within(ctx, o.DialCtxFn, changed)
	client, err := valkey.NewClient(o)
	if err != nil {
		end()
		if client != nil {
			client.Close()
		}
		return nil, err
	}
	return &closingClient{client, end}, nil
}

// closingClient is a client that ends its connections when it is closed.
type closingClient struct {
	valkey.Client

	end context.CancelFunc
}

// Close closes the client.
func (c *closingClient) Close() {
	c.end()
	c.Client.Close()
}

// NewLasting makes a client that connects when it is used, and again when its connection has
// broken. It ends with life. cut breaks the connection that it has, which may be silent.
func NewLasting(life context.Context, o valkey.ClientOption) (client valkey.Client, cut func()) {
	var last atomic.Pointer[net.Conn]
	dial := within(life, o.DialCtxFn, nil)
	o.DialCtxFn = func(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, addr, dialer, config)
		if err == nil {
			last.Store(&conn)
		}
		return conn, err
	}
	client, _ = valkey.NewClient(o) // a single client is there even if it cannot connect yet
	return client, func() {
		if conn := last.Load(); conn != nil {
			_ = (*conn).Close()
		}
	}
}

// dialFunc is the type of valkey.ClientOption.DialCtxFn.
type dialFunc = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

// within wraps a client's dial function: a connection, and a dial under way, end with life. changed
// is called before there is a new connection, and when the client has closed one; it may be nil.
func within(life context.Context, dial dialFunc, changed func()) dialFunc {
	if changed == nil {
		changed = func() {}
	}
	return func(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		conn, err := dial(ctx, addr, dialer, config)
		if err != nil {
			return nil, err
		}
		changed()
		return &connection{conn, life, context.AfterFunc(life, func() { _ = conn.Close() }), changed}, nil
	}
}

type connection struct {
	net.Conn

	life    context.Context
	lives   func() bool // true at its first call, unless life has ended
	changed func()
}

// Write sends nothing when life has ended: valkey-go ends a client with a PING.
func (c *connection) Write(b []byte) (int, error) {
	if c.life.Err() != nil {
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// Close closes the connection. valkey-go does so more than once.
func (c *connection) Close() error {
	if c.lives() {
		c.changed()
	}
	return c.Conn.Close()
}
