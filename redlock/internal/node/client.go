package node

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/valkey-io/valkey-go"
)

// NewClient makes a client that leaves no connection behind when it is closed, nor when it cannot
// be made.
//
// valkey-go v1.0.79 leaves one: a connection that is dialed while the client is closed is stored in
// its place (mux._pipe after mux.Close), and nobody ends it. The subscription of a Sentinel client
// begins in a goroutine of its own (sentinelClient.listWatch), so a Sentinel that answers badly is
// enough.
func NewClient(o valkey.ClientOption) (valkey.Client, error) {
	connections := &connections{open: make(map[*connection]struct{})}
	dial := o.DialCtxFn
	o.DialCtxFn = func(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, addr, dialer, config)
		if err != nil {
			return nil, err
		}
		return connections.add(conn)
	}
	client, err := valkey.NewClient(o)
	if client == nil {
		connections.end()
		return nil, err
	}
	return &closingClient{Client: client, connections: connections}, err
}

// closingClient ends what is left of its connections with itself.
type closingClient struct {
	valkey.Client

	connections *connections
}

// Close closes the client.
func (c *closingClient) Close() {
	c.Client.Close()
	c.connections.end()
}

// connections are those that a client has open.
type connections struct {
	mu    sync.Mutex
	open  map[*connection]struct{} // guarded by mu
	ended bool                     // guarded by mu; a connection that is dialed now comes too late
}

type connection struct {
	net.Conn

	of *connections
}

// Close ends a connection, which is then no longer one of those that are open.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// add takes a connection that was dialed, or ends it with net.ErrClosed when the client is closed.
func (s *connections) add(conn net.Conn) (net.Conn, error) {
	c := &connection{Conn: conn, of: s}
	s.mu.Lock()
	late := s.ended
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
	s.ended = true
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for c := range open {
		_ = c.Conn.Close()
	}
}
