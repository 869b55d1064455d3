//go:build long

package redlock_test

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A server that nobody can connect to any more goes on with the connections that it has, and is
// warned of.
func TestServerThatTakesNoConnectionsIsNamed(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	var log lockedBuffer
	q := s.gated(logTo(&log))
	l := s.hold(q, "key")
	ports := make([]string, 3)
	for i, n := range s.Nodes() {
		_, ports[i], _ = net.SplitHostPort(n.Addr())
		s.do([]string{"CONFIG", "SET", "port", "0"}, i)
	}
	for i := range 3 {
		require.Eventually(t, func() bool {
			n := node(t, q, i)
			require.True(t, n.Votes)
			return len(n.Warnings) == 1 && redlock.ErrorType(n.Warnings[0]) == "unconnected"
		}, 2*longTTL, pollTick)
		require.ErrorContains(t, node(t, q, i).Warnings[0], "connection refused")
	}
	require.NoError(t, q.Healthy())
	require.NoError(t, l.Err())
	require.Equal(t, 3, strings.Count(log.String(), "lacks what"), "%s", &log)
	for i := range 3 {
		s.do([]string{"CONFIG", "SET", "port", ports[i]}, i)
	}
	require.Eventually(t, func() bool { return len(node(t, q, 0).Warnings) == 0 }, 2*longTTL, pollTick)
	require.Eventually(t, func() bool { return strings.Count(log.String(), "lacks nothing") == 3 }, 2*longTTL, pollTick, "%s", &log)
}

// Nothing is concluded from a connection that cannot be made, whatever the reason: nodes vote over
// those that there are, leases are held and extended, and each node is warned of. It is so for a
// server that was replaced at its address by one that lets nobody in, too: see guarantees.md.
func TestLiveConnectionsGoOnWhereNoNewOneCanBeMade(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		tls    bool
		refuse func(t *testing.T, s *refusing)
		want   redlock.Condition
	}{
		"the client's certificate has expired": {true, func(_ *testing.T, s *refusing) { s.use(s.expired) }, redlock.Condition(wire.Unconnected)},
		"another password": {false, func(_ *testing.T, s *refusing) {
			s.do([]string{"CONFIG", "SET", "requirepass", "another"})
		}, redlock.ConditionNoAuth},
		"a proxy that is full": {false, func(_ *testing.T, s *refusing) { s.lead(s.nobody) }, redlock.Condition(wire.Unconnected)},
		"a proxy that hangs": {false, func(t *testing.T, s *refusing) {
			silent, err := net.Listen("tcp", "127.0.0.1:0") // a kernel accepts for it, and nobody answers
			require.NoError(t, err)
			t.Cleanup(func() { silent.Close() })
			s.lead(silent.Addr().String())
		}, redlock.Condition(wire.Unconnected)},
		"a successor with another password": {false, func(t *testing.T, s *refusing) {
			successor := startServers(t, 1)
			successor.do([]string{"CONFIG", "SET", "requirepass", "another"})
			s.lead(successor.Node(0).Addr())
		}, redlock.ConditionNoAuth},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startRefusing(t, test.tls)
			var log lockedBuffer
			q := gatedURLs(t, s.urls, redlock.WithMaxTTL(longTTL), redlock.WithClientOption(s.option), logTo(&log))
			l := s.hold(q, "key", redlock.WithTTL(longTTL))
			first := l.Deadline()
			before := len(log.String())
			test.refuse(t, s)
			for i := range s.ways {
				require.Eventually(t, func() bool {
					told := node(t, q, i).Warnings
					return len(told) == 1 && redlock.ErrorType(told[0]) == string(test.want)
				}, 2*longTTL, pollTick, "%s", &log)
			}
			s.awaitTries(3)
			for i := range s.ways {
				require.True(t, node(t, q, i).Votes, "%s", &log)
			}
			require.Eventually(t, func() bool { return l.Deadline().After(first.Add(longTTL / 2)) }, 2*longTTL, pollTick)
			require.NoError(t, l.Err())
			require.GreaterOrEqual(t, strings.Count(log.String(), "lacks what"), 3, "%s", &log)
			for _, word := range []string{"another server", "does not vote"} {
				require.NotContains(t, log.String()[before:], word)
			}
			require.NoError(t, s.hold(q, "another").Release(t.Context()))
			require.NoError(t, l.Release(t.Context()))
		})
	}
}
