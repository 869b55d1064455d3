//go:build long

package redlock_test

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// A server that is full goes on with the connections that it has, and would refuse the next ones:
// it says so before they are needed.
func TestServerThatBecomesFull(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	var log lockedBuffer
	q := s.gated(logTo(&log))
	require.NoError(t, s.hold(q, "key").Release(t.Context()))
	clients, err := strconv.Atoi(s.info(0, "connected_clients"))
	require.NoError(t, err)
	s.Node(0).Do(t, "CONFIG", "SET", "maxclients", strconv.Itoa(clients)) // over a connection of its own, which ends
	for range 2 {
		conn, err := net.Dial("tcp", s.Node(0).Addr())
		require.NoError(t, err)
		defer conn.Close()
	}
	warned := func() bool {
		n := node(t, q, 0)
		require.True(t, n.Votes)
		return len(n.Warnings) > 0
	}
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "lacks what") }, 2*longTTL, pollTick, "nobody asks: the look says it")
	require.True(t, warned())
	require.Equal(t, "max_clients", redlock.ErrorType(node(t, q, 0).Warnings[0]))
	require.ErrorContains(t, node(t, q, 0).Warnings[0], "new connections are refused")
	require.NoError(t, q.Healthy())
	err = s.Node(0).Do(t, "CONFIG", "SET", "maxclients", "10000").Error()
	require.NoError(t, err)
	require.Eventually(t, func() bool { return !warned() }, 2*longTTL, pollTick)
	require.Equal(t, 1, strings.Count(log.String(), "lacks what"), "%s", &log)
}
