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

// Lasting is a client that connects when it is used, and again when its connection has broken.
type Lasting struct {
	valkey.Client

	last atomic.Pointer[ending] // nil before the first connection
}

// ending is a connection that tells of its end.
type ending struct {
	net.Conn

	end context.CancelFunc
	own context.Context // ends with it
}

// Close closes the connection.
func (e *ending) Close() error {
	e.end()
	return e.Conn.Close()
}

// NewLasting makes a Lasting, which ends with life. A client of valkey-go connects when it is made,
// and goes on without that connection. So that nobody waits for it, the first dial is refused.
func NewLasting(life context.Context, o valkey.ClientOption) *Lasting {
	l, made := &Lasting{}, false
	dial := within(life, o.DialCtxFn, nil)
	o.DialCtxFn = func(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		if !made {
			return nil, net.ErrClosed
		}
		conn, err := dial(ctx, addr, dialer, config)
		if err != nil {
			return nil, err
		}
		e := &ending{Conn: conn}
		e.own, e.end = context.WithCancel(life)
		l.last.Store(e)
		return e, nil
	}
	l.Client, _ = valkey.NewClient(o)
	made = true
	return l
}

// Cut breaks the connection of the client, which may be silent.
func (l *Lasting) Cut() {
	if e := l.last.Load(); e != nil {
		_ = e.Close()
	}
}

// Broken is closed when the connection of the client ends; nil while there was none.
func (l *Lasting) Broken() <-chan struct{} {
	if e := l.last.Load(); e != nil {
		return e.own.Done()
	}
	return nil
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
