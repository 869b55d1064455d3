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
		s := startAged(t, 1, withUser(t, "-eval"))
		requireAdvice(t, gatedURLs(t, s.userURLs()), "scripts need EVAL", "+eval")
	})
	t.Run("no scripts may be loaded, without the gate", func(t *testing.T) {
		t.Parallel()
		s := startAged(t, 1, withUser(t, "-eval"))
		requireAdvice(t, gatedURLs(t, s.userURLs(), redlock.WithoutRestartGate()), "scripts need EVAL", "+eval")
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
