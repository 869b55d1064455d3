package node

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/valkey-io/valkey-go"
)

// NewClient makes a client that is connected. It ends with ctx or when it is closed. Then it leaves
// no connection behind, and does not wait for a server. changed is called before it has a new
// connection, and when one has ended; it may be nil.
//
// A client of valkey-go v1.0.79 leaves a connection behind: one that is dialed while the client is
// being closed is stored in its place (mux._pipe after mux.Close), and is never closed.
func NewClient(ctx context.Context, o valkey.ClientOption, changed func()) (valkey.Client, error) {
	connections := newConnections(changed)
	stop := context.AfterFunc(ctx, connections.end)
	o.DialCtxFn = connections.dial(o.DialCtxFn)
	client, err := valkey.NewClient(o)
	end := func() {
		stop()
		connections.end()
		if client != nil {
			client.Close()
		}
	}
	if err != nil {
		end()
		return nil, err
	}
	return &closingClient{client, end}, nil
}

// closingClient is a client that ends its connections when it is closed.
type closingClient struct {
	valkey.Client

	end func()
}

// Close closes the client.
func (c *closingClient) Close() { c.end() }

// NewConnection makes a connection for subscriptions, which the caller closes. ctx limits how long
// that takes; the connection does not end with it.
//
// A client of valkey-go connects when it is made, and takes connections for subscriptions from a
// pool beside that first one. It goes on without the first connection, so the first dial is
// refused.
func NewConnection(ctx context.Context, o valkey.ClientOption) (valkey.DedicatedClient, error) {
	connections := newConnections(nil)
	stop := context.AfterFunc(ctx, connections.end)
	dial, first := connections.dial(o.DialCtxFn), true
	o.DialCtxFn = func(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		if first {
			first = false
			return nil, net.ErrClosed
		}
		return dial(ctx, addr, dialer, config)
	}
	client, err := valkey.NewClient(o)
	if client == nil {
		stop()
		return nil, err
	}
	conn, _ := client.Dedicate()
	end := func() {
		connections.end()
		conn.Close()
		client.Close()
	}
	if !stop() {
		end()
		return nil, context.Cause(ctx)
	}
	return &closingConnection{conn, end}, nil
}

// closingConnection is a connection that ends its client when it is closed.
type closingConnection struct {
	valkey.DedicatedClient

	end func()
}

// Close closes the connection.
func (c *closingConnection) Close() { c.end() }

// connections has the open connections of a client.
type connections struct {
	ctx     context.Context // ends when they are ended
	cancel  context.CancelFunc
	changed func()

	mu   sync.Mutex
	open map[*connection]struct{} // guarded by mu
}

type connection struct {
	net.Conn

	of *connections
}

func newConnections(changed func()) *connections {
	if changed == nil {
		changed = func() {}
	}
	s := &connections{changed: changed, open: make(map[*connection]struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// dialFunc is the type of valkey.ClientOption.DialCtxFn.
type dialFunc = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

// dial wraps a client's dial function: a connection, and a dial under way, end with the others.
func (s *connections) dial(dial dialFunc) dialFunc {
	return func(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		conn, err := dial(ctx, addr, dialer, config)
		if err != nil {
			return nil, err
		}
		s.changed()
		return s.add(conn)
	}
}

// Close closes the connection, and takes it out of the open ones.
func (c *connection) Close() error {
	c.of.mu.Lock()
	_, open := c.of.open[c]
	delete(c.of.open, c)
	c.of.mu.Unlock()
	if open { // valkey-go closes a connection more than once
		c.of.changed()
	}
	return c.Conn.Close()
}

// add takes a connection that was dialed. If the client is closed, it closes the connection and
// returns net.ErrClosed.
func (s *connections) add(conn net.Conn) (net.Conn, error) {
	c := &connection{Conn: conn, of: s}
	s.mu.Lock()
	late := s.ctx.Err() != nil
	if !late {
		s.open[c] = struct{}{}
	}
	s.mu.Unlock()
	if late {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

// end closes all connections, and those that are dialed from now on.
func (s *connections) end() {
	s.mu.Lock()
	s.cancel()
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for c := range open {
		_ = c.Conn.Close()
	}
}
