package redlock_test

import (
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

// Field: one idle held lock cost 243,857 EVALSHA in 10 s.
func TestTrap07HeldLeaseIsQuiet(t *testing.T) {
	t.Parallel()
	const periods = 3 // in TTLs
	s := startServers(t, 3)
	l := s.hold(s.open(), "key")
	s.staysHeld(l, serverTTL/2) // beyond the first extension, which sets the counter again
	s.resetStats()
	s.staysHeld(l, periods*serverTTL)
	for _, i := range s.all() {
		stats := s.own(i)
		for said := stats["set"]; said > 0; said-- { // who uses the node: it asks first
			stats["evalsha"], stats["time"], stats["get"] = stats["evalsha"]-2, stats["time"]-2, stats["get"]-2
		}
		require.LessOrEqual(t, stats["set"], int64(periods), "%v", stats)
		delete(stats, "set")
		require.LessOrEqual(t, stats["evalsha"], int64(4*periods), "%v", stats)
		require.GreaterOrEqual(t, stats["evalsha"], int64(2*periods), "it is not extended: %v", stats)
		require.Equal(t, stats["evalsha"], stats["pexpire"], "each is an extension: %v", stats)
		require.LessOrEqual(t, stats["time"], int64(periods+1), "%v", stats)
		for name := range stats {
			require.Contains(t, []string{"evalsha", "get", "mget", "pexpire", "time", "hello", "ping"}, name, "%v", stats)
		}
		require.LessOrEqual(t, stats["hello"]+stats["ping"], int64(2*(periods+1)), "a connection for each look: %v", stats)
	}
}

// Field: waiters that poll. Ours try once a TTL in case a message was lost, and when the holder's
// keys would expire.
func TestTrap07WaiterIsQuiet(t *testing.T) {
	t.Parallel()
	const periods = 3
	s := startServers(t, 3)
	held := s.hold(s.open(redlock.WithTTL(longTTL)), "key")
	s.wait(s.open(), "key")
	s.staysHeld(held, serverTTL/4) // the attempt that follows the subscription
	s.resetStats()
	s.staysHeld(held, periods*serverTTL)
	for _, i := range s.all() {
		stats := s.own(i)
		tries := stats["zrank"] // the others are the holder's extensions
		require.LessOrEqual(t, tries, int64(2*periods), "%v", stats)
		require.GreaterOrEqual(t, tries, int64(periods-1), "no poll backs the messages: %v", stats)
		require.Zero(t, stats["subscribe"], "it subscribes again and again: %v", stats)
		require.LessOrEqual(t, stats["set"], stats["evalsha"]-tries, "a failed attempt writes: %v", stats)
		require.Zero(t, stats["zadd"], "it does not keep its place: %v", stats)
		require.LessOrEqual(t, stats["ping"], int64(2*(periods+1)), "the kernel looks after idle connections, and each look ends one: %v", stats)
	}
}

// All waiters of a Quorum share one connection a node.
func TestWaitersShareAConnection(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL))
	s.hold(q, "key")
	s.hold(q, "other")
	for range 10 {
		s.wait(q, "key")
		s.wait(q, "other")
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
