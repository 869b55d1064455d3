//go:build linux

package redlock_test

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/redlock"
)

// blackHole returns an address that neither accepts nor refuses: the listener's backlog is full, so
// the kernel drops every further SYN (listen(2)).
func blackHole(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { syscall.Close(fd) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	require.NoError(t, syscall.Listen(fd, 0))
	name, err := syscall.Getsockname(fd)
	require.NoError(t, err)
	addr := fmt.Sprint("127.0.0.1:", name.(*syscall.SockaddrInet4).Port)
	for {
		conn, err := net.DialTimeout("tcp", addr, 200*time.Millisecond)
		var ne net.Error
		if errors.As(err, &ne) && ne.Timeout() {
			return addr
		}
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
	}
}

// Field: the context bounded the call but not the dial below it.
func TestTrap19BlackHolesAreBoundedByTheNodeTimeout(t *testing.T) {
	s := startServers(t, 1)
	urls := []string{s.Node(0).URL(), "valkey://" + blackHole(t), "valkey://" + blackHole(t)}
	before := goleak.IgnoreCurrent()
	var q *redlock.Quorum
	var err error
	require.Less(t, took(func() { q, err = redlock.Open(urls, append(quietOptions(), redlock.WithTTL(longTTL))...) }), serverTTL/4)
	require.NoError(t, err)
	for range 5 {
		require.Less(t, took(func() { _, err = q.TryAcquire(t.Context(), "key") }), longTTL/20+lateness)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		require.ErrorIs(t, err, redlock.ErrTimeout)
		require.Equal(t, "timeout", redlock.ErrorType(err))
	}
	s.requireFree(longTTL/2, "the one node that answered keeps its key")
	require.Less(t, took(func() { require.NoError(t, q.Close()) }), serverTTL)
	require.NoError(t, goleak.Find(before))
}
