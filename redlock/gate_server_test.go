package redlock_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// follow makes a node a replica of another and waits until it has its data.
func (s *servers) follow(replica, master int) {
	s.t.Helper()
	host, port, err := net.SplitHostPort(s.Node(master).Addr())
	require.NoError(s.t, err)
	s.do([]string{"CONFIG", "SET", "repl-diskless-sync-delay", "0"}, master)
	s.do([]string{"REPLICAOF", host, port}, replica)
	require.Eventually(s.t, func() bool {
		return s.info(replica, "master_link_status") == "up" && s.info(master, "connected_slaves") != "0"
	}, longTTL, pollTick, "node %d never follows", replica)
}

func (s *servers) promote(replica int) {
	s.t.Helper()
	s.do([]string{"REPLICAOF", "NO", "ONE"}, replica)
}

// three are the URLs of three of a fleet's nodes.
func (s *servers) three(nodes ...int) []string {
	urls := make([]string, len(nodes))
	for i, n := range nodes {
		urls[i] = s.Node(n).URL()
	}
	return urls
}

func TestGateMasterWithAReplica(t *testing.T) {
	t.Parallel()
	s := startAged(t, 4)
	s.follow(3, 0)
	q := gatedURLs(t, s.three(0, 1, 2))
	ce := requireCondition(t, node(t, q, 0).Err, s.Node(0).Addr(), redlock.ConditionReplicated)
	require.ErrorContains(t, ce, "1 replica")
	require.ErrorContains(t, ce, "WithReplicas")
	_, err := q.TryAcquire(t.Context(), "key")
	require.NoError(t, err, "the others are a quorum")

	accepting := gatedURLs(t, s.three(0, 1, 2), redlock.WithReplicas())
	require.True(t, node(t, accepting, 0).Votes)
	require.NoError(t, node(t, accepting, 0).Err)
	s.kill(1)
	_, err = accepting.TryAcquire(t.Context(), "other")
	require.NoError(t, err, "its vote counts")
}

// jump steps the clocks of nodes.
func (s *servers) jump(d time.Duration, nodes ...int) {
	s.t.Helper()
	for _, i := range nodes {
		require.NoError(s.t, s.Node(i).JumpClock(d))
	}
}

// A clock that is set back to before the server's start gives it a negative uptime. It is no
// younger for that.
func TestClockBeforeTheServersStart(t *testing.T) {
	t.Parallel()
	s := startAged(t, 3)
	q := s.gated()
	s.jump(-2*day, s.all()...)
	require.Eventually(t, func() bool { return strings.HasPrefix(s.info(0, "uptime_in_seconds"), "-") }, longTTL, pollTick)
	for i := range s.Nodes() {
		n := node(t, q, i)
		require.True(t, n.Votes)
		require.Empty(t, n.Warnings)
	}
	s.do([]string{"SCRIPT", "FLUSH"})
	g := receive(t, s.acquire(q, "key"), serverQuarantine+whole, "they never vote again")
	require.NoError(t, g.err)
}
