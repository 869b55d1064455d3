package valkeytest_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// The port of a server that is down is nobody else's, who connects to it is refused, and the server
// gets it back. To bind it without SO_REUSEADDR stands for to be given it as any free port: the
// kernel looks for those by the same strict check.
func TestPortOfDeadServerIsKept(t *testing.T) {
	f := valkeytest.Start(t, 1)
	n := f.Node(0)
	require.NoError(t, n.Kill())
	addr, err := net.ResolveTCPAddr("tcp4", n.Addr())
	require.NoError(t, err)
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer syscall.Close(fd)
	require.ErrorIs(t, syscall.Bind(fd, &syscall.SockaddrInet4{Port: addr.Port, Addr: [4]byte(addr.IP.To4())}), syscall.EADDRINUSE)
	_, err = net.DialTCP("tcp4", nil, addr)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NoError(t, n.Restart(false))
	require.NoError(t, n.Do(t, "PING").Error())
}
