package redlock_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
)

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

// The advice is for the cause, and not only for the kind of error.
func TestAdviceIsForTheCause(t *testing.T) {
	t.Parallel()
	t.Run("a database number, and no right to SELECT", func(t *testing.T) {
		t.Parallel()
		s := startAged(t, 1, withUser(t))
		q := gatedURLs(t, []string{s.userURLs()[0] + "/1"})
		text := requireAdvice(t, q, "leave the database number out of the URL")
		require.NotContains(t, text, "INFO")
		require.NotContains(t, text, "+evalsha")
	})
	t.Run("a wrong password", func(t *testing.T) {
		t.Parallel()
		s := startAged(t, 1, withUser(t))
		q := gatedURLs(t, []string{"valkey://tenure:wrong@" + s.Node(0).Addr()})
		requireAdvice(t, q, "correct user and password", "ACL LIST")
	})
	t.Run("no password", func(t *testing.T) {
		t.Parallel()
		s := startAged(t, 1, withUser(t))
		s.do([]string{"ACL", "SETUSER", "default", "off"})
		q := gatedURLs(t, []string{s.Node(0).URL()})
		requireAdvice(t, q, "put user and password into the URL")
	})
	t.Run("keys of another prefix", func(t *testing.T) {
		t.Parallel()
		s := startAged(t, 1, withUser(t))
		q := gatedURLs(t, s.userURLs(), redlock.WithPrefix("billing"))
		text := requireAdvice(t, q, "~billing:*", "WithPrefix")
		require.NotContains(t, text, "+evalsha")
	})
	t.Run("a command", func(t *testing.T) {
		t.Parallel()
		s := startAged(t, 1, withUser(t, "-evalsha"))
		requireAdvice(t, gatedURLs(t, s.userURLs()), "+evalsha")
	})
	t.Run("no scripts may be loaded", func(t *testing.T) {
		t.Parallel()
		s := startAged(t, 1, withUser(t, "-script|load"))
		requireAdvice(t, gatedURLs(t, s.userURLs()), "SCRIPT LOAD", "+script|load")
	})
	t.Run("no scripts may be loaded, without the gate", func(t *testing.T) {
		t.Parallel()
		s := startAged(t, 1, withUser(t, "-script|load"))
		requireAdvice(t, gatedURLs(t, s.userURLs(), redlock.WithoutRestartGate()), "SCRIPT LOAD", "+script|load")
	})
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
	t.Run("a replica that was promoted", func(t *testing.T) {
		t.Parallel()
		s := startAged(t, 2)
		s.follow(1, 0)
		s.do([]string{"REPLICAOF", "NO", "ONE"})
		q := gatedURLs(t, []string{s.Node(1).URL()})
		requireAdvice(t, q, "it was a replica", "restart it now that it has no replicas")
	})
}
