package redlock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// resetStats starts the counting of commands on all nodes.
func (s *servers) resetStats() {
	s.t.Helper()
	for _, n := range s.Nodes() {
		n.ResetStats(s.t)
	}
}

// own returns the commands a node served, without those of the test itself, and of trials, which
// alone delete something here.
func (s *servers) own(node int) map[string]int64 {
	s.t.Helper()
	stats := s.Node(node).CommandStats(s.t)
	for _, mine := range []string{"info", "config|resetstat", "keys", "pubsub|channels"} {
		delete(stats, mine)
	}
	trials := stats["del"]
	for name, times := range map[string]int64{"evalsha": 1, "time": 1, "get": 2, "hget": 1, "hset": 1, "hmget": 1, "pttl": 1, "set": 2, "pexpire": 2, "del": 1, "exists": 1, "mget": 1,
		"zadd": 1, "zrank": 1, "zscore": 1, "zcard": 1, "zrange": 1, "zrem": 1, "publish": 1} {
		if stats[name] -= trials * times; stats[name] == 0 {
			delete(stats, name)
		}
	}
	return stats
}

// All waiters of a Quorum share one connection a node.
func TestWaitersShareAConnection(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL))
	for i := range 20 {
		key := fmt.Sprint("key", i)
		s.hold(q, key)
		s.wait(q, key)
		for range 5 {
			s.acquire(q, key) // they stand behind it
		}
	}
	for _, n := range s.Nodes() {
		clients, err := n.Do(t, "CLIENT", "LIST", "TYPE", "pubsub").ToString()
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(clients, "\n"), clients)
		clients, err = n.Do(t, "CLIENT", "LIST", "TYPE", "normal").ToString()
		require.NoError(t, err)
		require.Equal(t, 2, strings.Count(clients, "\n"), "the Quorum's and the test's: %s", clients)
	}
}
