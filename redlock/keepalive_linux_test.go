package redlock

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"
	"golang.org/x/sys/unix"
)

// A connection that died without a word is noticed by the kernel: nobody is asked for that.
func TestDeadConnectionsAreNoticedByTheKernel(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	for _, tt := range []struct {
		name                  string
		opts                  []Option
		idle, interval, count int // seconds; probes
	}{
		{"by default", nil, 5, 1, 3},
		{"a short TTL", []Option{WithTTL(4 * time.Second)}, 2, 1, 3},
		{"the shortest TTL", []Option{WithTTL(time.Second)}, 1, 1, 3},
		{"a long TTL", []Option{WithTTL(10 * time.Minute), WithMaxTTL(10 * time.Minute)}, 5, 1, 3},
		{"as the user wants", []Option{WithClientOption(func(_ string, o *valkey.ClientOption) {
			o.Dialer.KeepAliveConfig = net.KeepAliveConfig{Enable: true, Idle: 40 * time.Second, Interval: 7 * time.Second, Count: 4}
		})}, 40, 7, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := newConfig(tt.opts)
			require.NoError(t, err)
			o, err := c.nodeOption("valkey://" + listener.Addr().String())
			require.NoError(t, err)
			require.Equal(t, time.Minute, o.Dialer.KeepAlive, "how often valkey-go sends a PING")
			conn, err := o.Dialer.DialContext(t.Context(), "tcp", o.InitAddress[0])
			require.NoError(t, err)
			defer func() { require.NoError(t, conn.Close()) }()
			require.Equal(t, 1, socketOption(t, conn, unix.SOL_SOCKET, unix.SO_KEEPALIVE))
			require.Equal(t, tt.idle, socketOption(t, conn, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE))
			require.Equal(t, tt.interval, socketOption(t, conn, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL))
			require.Equal(t, tt.count, socketOption(t, conn, unix.IPPROTO_TCP, unix.TCP_KEEPCNT))
		})
	}
}

func socketOption(t *testing.T, conn net.Conn, level, name int) (value int) {
	t.Helper()
	raw, err := conn.(syscall.Conn).SyscallConn()
	require.NoError(t, err)
	var optionErr error
	require.NoError(t, raw.Control(func(fd uintptr) { value, optionErr = unix.GetsockoptInt(int(fd), level, name) }))
	require.NoError(t, optionErr)
	return value
}
