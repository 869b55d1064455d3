package redlock

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/internal/resp"
)

// GuardReplies has the connections of a client guarded: what no Valkey server sends to a Quorum
// ends the connection, with an error that the Quorum reports as "bad_reply", before the
// client acts on it. valkey-go panics, or allocates what it is told to, at some of it, and that
// ends the process. Open guards all its connections. For a client of one's own that asks the nodes,
// call it last on its options, before valkey.NewClient, and once:
//
//	option := valkey.ClientOption{InitAddress: []string{addr}}
//	redlock.GuardReplies(&option)
//	client, err := valkey.NewClient(option)
//
// It sets DialCtxFn, around the one that is there, or DialFn, or what valkey-go does without
// either.
//
// A guarded client is for commands of the kind that a Quorum uses: a reply of more than a mebibyte
// is refused, and so are commands that are answered more than once, such as MONITOR, or a SUBSCRIBE
// with several channels. Client-side caching is not guarded. It speaks RESP3, so AlwaysRESP2 is set
// to false.
func GuardReplies(o *valkey.ClientOption) {
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
			allowDelay(conn) // which valkey-go does itself with connections that it knows
		}
		return resp.Guard(conn), nil
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
