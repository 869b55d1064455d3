package node

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/valkey-io/valkey-go"
)

// NewClient makes a client that is connected, and ends with ctx or when it is closed. It leaves no
// connection behind, nor does it wait for a server when it ends. changed is called before it has a
// new connection, and when one has ended; it may be nil.
//
// valkey-go v1.0.79 leaves one: a connection that is dialed while the client is closed is stored in
// its place (mux._pipe after mux.Close), and nobody ends it.
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

// closingClient ends its connections with itself.
type closingClient struct {
	valkey.Client

	end func()
}

// Close closes the client.
func (c *closingClient) Close() { c.end() }

// NewConnection makes a connection for subscriptions, which the caller closes. It is made when ctx
// ends, or not any more.
//
// A client of valkey-go connects when it is made, and takes connections for subscriptions from a
// pool beside. It goes on without the first one, so that is refused.
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

// closingConnection ends its client with itself.
type closingConnection struct {
	valkey.DedicatedClient

	end func()
}

// Close closes the connection.
func (c *closingConnection) Close() { c.end() }

// connections are those that a client has open.
type connections struct {
	ctx     context.Context // ends with them
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

// dialFunc is that of valkey.ClientOption.
type dialFunc = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

// dial is a client's way to connections, which end with the others.
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

// Close ends a connection, which is then no longer one of those that are open.
func (c *connection) Close() error {
	c.of.mu.Lock()
	_, open := c.of.open[c]
	delete(c.of.open, c)
	c.of.mu.Unlock()
	if open { // valkey-go closes one more than once
		c.of.changed()
	}
	return c.Conn.Close()
}

// add takes a connection that was dialed, or ends it with net.ErrClosed when the client is closed.
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

// end ends all connections, and those that are dialed from now on.
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
