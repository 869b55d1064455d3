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
