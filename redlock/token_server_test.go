package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

func TestTokensOfTwoQuorumsIncrease(t *testing.T) {
	s := startServers(t, 3)
	quorums := []*redlock.Quorum{s.open(redlock.WithTTL(longTTL)), s.open(redlock.WithTTL(longTTL))}
	last := uint64(0)
	for i := range 200 {
		switch { // nodes that forget their counters must not take the tokens back
		case i == 100:
			s.do([]string{"FLUSHALL"})
		case i%10 == 5:
			s.do([]string{"FLUSHALL"}, i/10%3)
		}
		l, err := quorums[i%2].TryAcquire(t.Context(), "key")
		require.NoError(t, err)
		require.Greater(t, l.FencingToken(), last)
		last = l.FencingToken()
		require.NoError(t, l.Release(t.Context()))
	}
}

// Counters live for a day after their last use at least, and with the wall clock's microseconds for
// a hint start above their past.
func TestTokenStartsAboveItsPast(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open()
	before := uint64(time.Now().UnixMicro())
	l := s.hold(q, "key")
	require.GreaterOrEqual(t, l.FencingToken(), before)
	require.Less(t, l.FencingToken(), before+uint64(time.Minute.Microseconds()))
	for _, n := range s.Nodes() {
		ms, err := n.Do(t, "PTTL", fences).AsInt64()
		require.NoError(t, err)
		require.InDelta(t, 26*time.Hour.Milliseconds(), ms, float64(time.Minute.Milliseconds()))
	}
}

// A server's Lua takes more texts for numbers than this library writes. A counter that is damaged
// on one of three servers takes no part, in whatever script finds it, and is healed by the next
// extension.
func TestDamagedCounterOnAServer(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL))
	last := uint64(0)
	for _, damaged := range []string{
		"9007199254740992", "18446744073709551610", fmt.Sprint(time.Now().Add(25 * time.Hour).UnixMicro()),
		"1e15", "0x5AF3107A4000", "nan", "inf", "-1", " 5", "", "text\r\n-ERR", "list",
	} {
		s.do([]string{"DEL", fences}, 0)
		if damaged == "list" {
			s.do([]string{"RPUSH", fences, "x"}, 0)
		} else {
			s.do([]string{"HSET", fences, slotOf("key"), damaged}, 0)
		}
		for i := range 4 {
			l, err := q.TryAcquire(t.Context(), "key")
			require.NoError(t, err, damaged)
			require.Greater(t, l.FencingToken(), last, damaged)
			require.InDelta(t, time.Now().UnixMicro(), l.FencingToken(), float64(time.Minute.Microseconds()), damaged)
			last = l.FencingToken()
			if i == 3 {
				require.Eventually(t, func() bool {
					require.NoError(t, l.Extend(t.Context()), damaged)
					text, _ := s.Node(0).Do(t, "HGET", fences, slotOf("key")).ToString() // an error while it is a list
					return text == fmt.Sprint(last)
				}, longTTL, pollTick, "healed: %s", damaged)
			}
			require.NoError(t, l.Release(t.Context()))
		}
	}
}
