package resp

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/valkey-io/valkey-go"
)

// GuardClient guards the connections of a client. Call it once, as the last change of the options,
// before valkey.NewClient. It sets DialCtxFn to dial as the options said, by DialCtxFn, DialFn or
// valkey-go's default, and to guard the connection. Client-side caching is not guarded. A guarded
// client speaks RESP3, so AlwaysRESP2 is set to false.
func GuardClient(o *valkey.ClientOption) {
	dial, dialOld, delay := o.DialCtxFn, o.DialFn, o.DisableTCPNoDelay
	o.AlwaysRESP2 = false
	o.DialCtxFn = func(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (conn net.Conn, err error) {
		switch {
		case dial != nil:
			conn, err = dial(ctx, addr, dialer, config)
		case dialOld != nil:
			conn, err = dialOld(addr, dialer, config)
		case config != nil:
			conn, err = (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", addr)
		default:
			conn, err = dialer.DialContext(ctx, "tcp", addr)
		}
		if err != nil {
			return nil, err
		}
		if delay {
			allowDelay(conn) // valkey-go does this only with connection types that it knows
		}
		return Guard(conn), nil
	}
}

// allowDelay lets the kernel collect small writes.
func allowDelay(conn net.Conn) {
	if c, ok := conn.(*tls.Conn); ok {
		conn = c.NetConn()
	}
	if c, ok := conn.(*net.TCPConn); ok {
		_ = c.SetNoDelay(false)
	}
}
