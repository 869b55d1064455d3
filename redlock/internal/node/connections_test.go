package node

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// A connection that has ended is forgotten, and one that comes after the end is ended at once.
func TestConnectionsOfAClient(t *testing.T) {
	s := &connections{open: make(map[*connection]struct{})}
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
