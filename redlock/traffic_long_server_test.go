//go:build long

package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

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
