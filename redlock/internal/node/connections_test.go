package node

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
)

// A connection that has ended is forgotten, and one that comes after the end is ended at once.
func TestConnectionsOfAClient(t *testing.T) {
	s := newConnections()
	dial := func() (near, far net.Conn) {
		near, far = net.Pipe()
		t.Cleanup(func() { _ = far.Close() })
		return near, far
	}
	ended := func(far net.Conn) {
		t.Helper()
		_, err := far.Read(make([]byte, 1))
		require.Error(t, err)
	}
	near, far := dial()
	conn, err := s.add(near)
	require.NoError(t, err)
	require.Len(t, s.open, 1)
	require.NoError(t, conn.Close())
	ended(far)
	require.Empty(t, s.open)

	near, far = dial()
	_, err = s.add(near)
	require.NoError(t, err)
	s.end()
	ended(far)
	near, far = dial()
	conn, err = s.add(near)
	require.ErrorIs(t, err, net.ErrClosed)
	require.Nil(t, conn)
	ended(far)
}

// option has a server dialed, and counts how often.
func option(dials *int, dial dialFunc) valkey.ClientOption {
	o := optionOf(func(ctx context.Context, addr string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		*dials++
		return dial(ctx, addr, dialer, config)
	})
	o.ConnWriteTimeout = time.Hour
	return o
}

// A client, and a connection for subscriptions, each have one connection, which ends with it.
func TestOneConnectionEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, dials := newServer("a"), 0
		o := option(&dials, s.dial)
		ctx, cancel := context.WithCancel(t.Context())
		var changes int
		client, err := NewClient(ctx, o, func() { changes++ })
		require.NoError(t, err)
		require.NoError(t, client.Do(t.Context(), client.B().Ping().Build()).Error())
		require.Equal(t, 1, dials)
		require.Equal(t, 1, changes, "before it is there")
		cancel()
		synctest.Wait()
		require.Error(t, client.Do(t.Context(), client.B().Ping().Build()).Error(), "it ends with the context")
		client.Close()

		dials = 0
		ctx, cancel = context.WithCancel(t.Context())
		conn, err := NewConnection(ctx, o)
		require.NoError(t, err)
		cancel()
		synctest.Wait()
		require.NoError(t, conn.Do(t.Context(), conn.B().Ping().Build()).Error(), "it does not end with the context")
		require.Equal(t, 1, dials)
		conn.Close()
	})
}

// What is on its way is not waited for when the context ends: a dial, nor a server that says
// nothing. Nor does the end of a client wait for its server.
func TestConnectionThatDoesNotCome(t *testing.T) {
	for name, dial := range map[string]dialFunc{
		"dial": func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"server": func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			near, _ := net.Pipe()
			return near, nil
		},
		"refused": func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return nil, errors.New("refused")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var dials int
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				client, err := NewClient(ctx, option(&dials, dial), nil)
				require.Error(t, err)
				require.Nil(t, client)
				conn, err := NewConnection(ctx, option(&dials, dial))
				if err == nil {
					require.Error(t, conn.Do(ctx, conn.B().Ping().Build()).Error())
					conn.Close()
				}
				require.LessOrEqual(t, time.Since(start), time.Second)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s, dials := newServer("a"), 0
		client, err := NewClient(t.Context(), option(&dials, s.dial), nil)
		require.NoError(t, err)
		s.set(func() { s.slow = time.Minute })
		start := time.Now()
		client.Close()
		require.Zero(t, time.Since(start))
	})
}
