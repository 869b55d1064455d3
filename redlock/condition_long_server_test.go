//go:build long

package redlock_test

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

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

// A right that is missing shows, with its name, whatever it is for: the node has no vote, or Nodes
// warns. It is over when the right is there.
func TestACLEachRightThatIsMissingShows(t *testing.T) {
	t.Parallel()
	for _, right := range strings.Fields(redlock.Rights) {
		t.Run(right, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 1, withUser(t, strings.Replace(right, "+", "-", 1)))
			var log lockedBuffer
			q := gatedURLs(t, s.userURLs(), logTo(&log))
			shows := func(err error) bool {
				return redlock.ErrorType(err) == string(redlock.ConditionNoPermission) && strings.Contains(strings.ToUpper(errorText(err)), strings.ToUpper(right[1:]))
			}
			require.Eventually(t, func() bool {
				n := q.Nodes(t.Context())[0]
				return shows(n.Err) || n.Votes && slices.ContainsFunc(n.Warnings, shows)
			}, longTTL, pollTick, "%s", &log)
			require.Equal(t, 1, saidOf(&log), "%s", &log)
			if node(t, q, 0).Votes {
				s.staysHeld(s.hold(q, "key"), serverTTL*3/2)
			}
			s.do([]string{"ACL", "SETUSER", "tenure", right})
			require.Eventually(t, func() bool {
				n := q.Nodes(t.Context())[0]
				return n.Votes && len(n.Warnings) == 0
			}, longTTL, pollTick, "%s", &log)
		})
	}
}

// A server that answers what it is asked about itself, and holds back what may write, fails for as
// long as it does: that is said once, with what it may be, and no vote comes and goes with its
// answers. Once it goes on it is well.
func TestServersThatHoldWritesBack(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	var log lockedBuffer
	q := s.gated(logTo(&log))
	s.hold(q, "key")
	s.do([]string{"CLIENT", "PAUSE", "600000", "WRITE"})
	require.Eventually(t, func() bool { return strings.Count(log.String(), "CLIENT UNPAUSE") >= 3 }, longTTL, pollTick, "%s", &log)
	require.Never(t, func() bool { return q.Healthy() == nil }, 5*time.Second, pollTick, "no quorum can be had")
	require.Equal(t, 6, strings.Count(log.String(), "failing"), "that it fails, and then why: %s", &log)
	require.Equal(t, 3, strings.Count(log.String(), "CLIENT UNPAUSE"), "%s", &log)
	require.NotContains(t, log.String(), "answers again")
	for _, n := range q.Nodes(t.Context()) {
		require.False(t, n.Votes)
		require.ErrorIs(t, n.Err, redlock.ErrTimeout)
		require.ErrorContains(t, n.Err, "CLIENT UNPAUSE")
	}
	require.ErrorContains(t, q.Healthy(), "CLIENT UNPAUSE")
	s.do([]string{"CLIENT", "UNPAUSE"})
	require.Eventually(t, func() bool { return q.Healthy() == nil }, longTTL/2, pollTick, "%s", &log)
	require.Eventually(t, func() bool { return strings.Count(log.String(), "answers again") == 3 }, longTTL/2, pollTick, "%s", &log)
}
