//go:build long

package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// While no quorum of nodes votes, waiters ask as seldom as their pauses say, and do not wake each
// other, or themselves: a node that was not asked has granted nothing that were to be taken back.
func TestWaitersAreQuietInAnOutage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		hurt  func(s *servers)
		votes int // nodes that vote on
	}{
		{"all restarted", func(s *servers) { s.restart(s.all()...) }, 0},
		{"two of three restarted", func(s *servers) { s.restart(0, 1) }, 1},
		{"two of three killed", func(s *servers) { s.kill(0, 1) }, 1},
		{"foreign counters", func(s *servers) {
			s.do([]string{"DEL", lockKey("key")})
			s.do([]string{"SET", fences, "foreign"})
		}, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 3)
			const waiters = 3
			q := s.gated(redlock.WithTTL(longTTL))
			held := s.hold(s.gated(redlock.WithTTL(longTTL)), "key", redlock.WithTTL(serverTTL))
			for i := range waiters {
				if i == 0 {
					s.acquire(q, "key")
				} else {
					s.acquire(s.gated(redlock.WithTTL(longTTL)), "key")
				}
			}
			for _, i := range s.all() {
				require.Eventually(t, func() bool { return s.waiting(i, "key") == waiters }, longTTL, pollTick)
			}
			test.hurt(s)
			held.StopExtending() // nobody is in the way
			require.Eventually(t, func() bool { return held.Err() != nil }, longTTL, pollTick)
			require.Eventually(t, func() bool {
				votes := 0
				for _, n := range q.Nodes(t.Context()) {
					if n.Votes {
						votes++
					}
				}
				return votes == test.votes
			}, longTTL, pollTick, "the outage is seen")
			time.Sleep(time.Second) // pauses are short at first
			const during = 3 * time.Second
			s.Node(2).ResetStats(t)
			time.Sleep(during)
			// An attempt is up to four requests, with what takes it back and has the place in the
			// queue again, and a pause is half of a second on average.
			stats := s.own(2)
			require.LessOrEqual(t, stats["evalsha"], int64(waiters*20*during/time.Second), "%v", stats)
			if test.votes == 0 {
				require.Zero(t, stats["publish"], "what was not sent is not taken back: %v", stats)
				require.Equal(t, stats["hgetall"], stats["exists"], "which looks for those who wait, except in what asks who uses the node: %v", stats)
			}
		})
	}
}

// Field: expiry events come 0.1 to 0.6 s late, and among 100,000 other volatile keys not within 60
// s.
func TestTrap12SuccessorComesAtTheExpiry(t *testing.T) {
	s := startServers(t, 3)
	s.do([]string{"EVAL", `for i = 1, 100000 do redis.call('SET', 'volatile' .. i, i, 'PX', 3600000 + i) end return 'done'`, "0"})
	dead := s.hold(s.open(redlock.WithTTL(2*serverTTL)), "key")
	granted := s.wait(s.open(redlock.WithTTL(longTTL)), "key") // polls every 10 s, which is no help
	dead.StopExtending()
	var expiry time.Time
	for _, i := range s.all() {
		asked := time.Now()
		if at := asked.Add(s.pttl(i, "key")); at.After(expiry) {
			expiry = at
		}
	}
	g := receive(t, granted, 4*serverTTL, "the successor was not told of the expiry")
	require.NoError(t, g.err)
	require.WithinRange(t, g.at, dead.Deadline(), expiry.Add(serverTTL/2))
	require.ErrorIs(t, dead.Err(), redlock.ErrLost)
	require.Greater(t, g.lease.FencingToken(), dead.FencingToken())
}

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
