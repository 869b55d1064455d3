//go:build long

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// Field: waiters that poll. Ours try once a TTL in case a message was lost, and when the holder's
// keys would expire.
func TestTrap07WaiterIsQuiet(t *testing.T) {
	t.Parallel()
	const ttl, least = 3 * serverTTL, 3 // TTLs that are watched
	s := startServers(t, 3)
	held := s.hold(s.open(redlock.WithTTL(longTTL)), "key")
	s.wait(s.open(redlock.WithTTL(ttl)), "key")
	s.staysHeld(held, ttl/4) // the attempt that follows the subscription
	s.resetStats()
	began := time.Now()
	s.staysHeld(held, least*ttl)
	for _, i := range s.all() {
		stats := s.own(i)
		stats["evalsha"] += stats["eval"] // of a script that was sent for the first time
		delete(stats, "eval")
		periods := int64(time.Since(began)/ttl) + 1
		tries := stats["zrank"] // the others are the holder's extensions
		require.LessOrEqual(t, tries, 2*periods, "%v", stats)
		require.GreaterOrEqual(t, tries, int64(least-1), "no poll backs the messages: %v", stats)
		require.Zero(t, stats["subscribe"], "it subscribes again and again: %v", stats)
		require.LessOrEqual(t, stats["set"], stats["evalsha"]-tries, "a failed attempt writes: %v", stats)
		require.Zero(t, stats["zadd"], "it does not keep its place: %v", stats)
		require.LessOrEqual(t, stats["ping"], 2*(periods+1), "the kernel looks after idle connections, and each look ends one: %v", stats)
	}
}

// Field: one idle held lock cost 243,857 EVALSHA in 10 s.
func TestTrap07HeldLeaseIsQuiet(t *testing.T) {
	t.Parallel()
	const ttl, least = 3 * serverTTL, 3 // TTLs that are watched
	s := startServers(t, 3)
	l := s.hold(s.open(redlock.WithTTL(ttl)), "key")
	for _, i := range s.all() { // beyond the first extension, which sets the counter again
		require.Eventually(t, func() bool { return s.own(i)["hmget"] > 0 }, patience, pollTick)
	}
	s.staysHeld(l, ttl/2)
	s.resetStats()
	began := time.Now()
	s.staysHeld(l, least*ttl)
	for _, i := range s.all() {
		stats := s.own(i)
		stats["evalsha"] += stats["eval"] // of a script that was sent for the first time
		delete(stats, "eval")
		periods := int64(time.Since(began)/ttl) + 1
		said := stats["hgetall"] // who uses the node
		require.LessOrEqual(t, said, periods, "%v", stats)
		for name := range map[string]bool{"evalsha": true, "time": true, "exists": true, "pexpire": true, "hset": true, "hgetall": true} {
			if stats[name] -= said; stats[name] == 0 {
				delete(stats, name)
			}
		}
		require.LessOrEqual(t, stats["evalsha"], 4*periods, "%v", stats)
		require.GreaterOrEqual(t, stats["evalsha"], int64(2*least), "it is not extended: %v", stats)
		require.InDelta(t, stats["evalsha"], stats["pexpire"], 1, "each is an extension, but one that is about something else: %v", stats)
		require.LessOrEqual(t, stats["time"], 2*periods, "%v", stats)
		for name := range stats {
			require.Contains(t, []string{"evalsha", "get", "mget", "pexpire", "time", "hello", "ping"}, name, "%v", stats)
		}
		require.LessOrEqual(t, stats["hello"]+stats["ping"], 2*(periods+1), "a connection for each look: %v", stats)
	}
}
