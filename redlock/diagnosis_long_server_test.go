//go:build long

package redlock_test

import (
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
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

// The advice is for the cause, and not only for the kind of error.
func TestAdviceIsForTheCause(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rules  []string // of the user
		path   string   // of the URL
		opts   []redlock.Option
		says   []string
		silent []string
	}{
		"a database number, and no right to SELECT": {nil, "/1", nil, []string{"leave the database number out of the URL"}, []string{"INFO", "+evalsha"}},
		"keys of another prefix":                    {nil, "", []redlock.Option{redlock.WithPrefix("billing")}, []string{"~billing:*", "WithPrefix"}, []string{"+evalsha"}},
		"no scripts may be loaded":                  {[]string{"-eval"}, "", nil, []string{"scripts need EVAL", "+eval"}, nil},
		"no scripts may be loaded, without the gate": {[]string{"-eval"}, "", []redlock.Option{redlock.WithoutRestartGate()},
			[]string{"scripts need EVAL", "+eval"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 1, withUser(t, test.rules...))
			text := requireAdvice(t, gatedURLs(t, []string{s.userURLs()[0] + test.path}, test.opts...), test.says...)
			for _, not := range test.silent {
				require.NotContains(t, text, not)
			}
		})
	}
	t.Run("a function that does not end", func(t *testing.T) {
		t.Parallel()
		s := startAged(t, 1, valkeytest.WithArgs("--busy-reply-threshold", "1"))
		q := s.gated()
		s.do([]string{"FUNCTION", "LOAD", "#!lua name=x\nredis.register_function('loop', function() while true do end end)"})
		s.busy(0, "FCALL", "loop", "0")
		requireAdvice(t, q, "end the function with FUNCTION KILL", "SHUTDOWN NOSAVE")
		s.do([]string{"FUNCTION", "KILL"})
		requireVotes(t, q, 0, longTTL)
	})
}

// requireAdvice waits until a node has no vote and says what to do about it, and says that once.
func requireAdvice(t *testing.T, q *redlock.Quorum, says ...string) string {
	t.Helper()
	var n redlock.NodeStatus
	require.Eventually(t, func() bool {
		n = q.Nodes(t.Context())[0]
		return n.Err != nil && strings.Contains(n.Err.Error(), says[0])
	}, longTTL, pollTick, "%v", &n)
	for _, text := range says {
		require.ErrorContains(t, n.Err, text)
	}
	for _, w := range n.Warnings {
		require.NotEqual(t, redlock.ErrorType(n.Err), redlock.ErrorType(w), "said twice")
	}
	return n.Err.Error()
}

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
