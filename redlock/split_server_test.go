package redlock_test

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
)

// distant puts a client at a distance from each server, one way and the same back.
func (s *servers) distant(oneWay ...time.Duration) redlock.Option {
	urls := s.URLs()
	return redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
		d := oneWay[slices.Index(urls, url)]
		o.DialCtxFn = func(ctx context.Context, addr string, dialer *net.Dialer, _ *tls.Config) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil, err
			}
			return relay(conn, constant(d)), nil
		}
	})
}
