package redlock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

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

// A value of another type under a name of the library is named with what to do, counts as absent or
// is removed; and a quorum of other nodes does not care.
func TestForeignTypes(t *testing.T) {
	t.Parallel()
	s := startServers(t, 1)
	alone := s.open(redlock.WithTTL(longTTL))
	for _, put := range [][]string{{"RPUSH", "x"}, {"HSET", "x", "y"}, {"SADD", "x"}} {
		for kind, foreign := range map[string]string{"lock": lockKey(put[0]), "counter": fences, "queue": lockKey("of "+put[0]) + ":wait"} {
			if kind == "counter" && put[0] == "HSET" {
				continue // a field of its own disturbs nobody
			}
			key := map[string]string{"lock": put[0], "counter": "any", "queue": "of " + put[0]}[kind]
			s.do([]string{"DEL", foreign}, 0)
			s.do(append([]string{put[0], foreign}, put[1:]...), 0)
			l, err := tryUntilAnswered(t, alone, key)
			if kind == "queue" {
				require.NoError(t, err, key)
				require.NoError(t, l.Release(t.Context()), key)
				continue
			}
			require.ErrorIs(t, err, redlock.ErrNoQuorum, key)
			ce := requireCondition(t, errorOf(t, err, s.Node(0).Addr()), s.Node(0).Addr(), redlock.ConditionDamaged)
			require.ErrorContains(t, ce, "\""+foreign)
			require.ErrorContains(t, ce, "DEL")
			requireNoLua(t, err)
			if kind == "lock" {
				_, err = alone.Holder(t.Context(), key)
				require.ErrorContains(t, err, fmt.Sprintf("%q", foreign))
				requireNoLua(t, err)
			}
			s.do([]string{"DEL", foreign}, 0)
			require.NoError(t, alone.Healthy(), "other keys can be had")
		}
	}
}

// Where something else is in the place of a queue, those who wait queue all the same.
func TestForeignQueueIsRemoved(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	q := s.open(redlock.WithTTL(longTTL))
	l := s.hold(q, "key")
	s.do([]string{"RPUSH", lockKey("key") + ":wait", "x"})
	granted := s.acquire(q, "key")
	for i := range s.Nodes() {
		require.Eventually(t, func() bool {
			n, err := s.Node(i).Do(t, "ZCARD", lockKey("key")+":wait").AsInt64()
			return err == nil && n == 1
		}, longTTL, pollTick)
	}
	require.NoError(t, l.Release(t.Context()))
	require.NoError(t, receive(t, granted, longTTL/4, "it is not called").err)
}

// A lock that something else has written is a holder, whose name is shown in one line.
func TestForeignHolderIsQuoted(t *testing.T) {
	t.Parallel()
	s := startServers(t, 3)
	s.do([]string{"SET", lockKey("key"), "a\r\n-ERR b\x1b[2J"})
	_, err := tryUntilAnswered(t, s.open(), "key")
	var held *redlock.HeldError
	require.ErrorAs(t, err, &held)
	require.Equal(t, redlock.NoExpiry, held.Holder.TTL)
	require.ErrorContains(t, err, `"a\r\n-ERR b\x1b[2J"`)
	require.ErrorContains(t, err, "without expiry")
}

// requireNoLua demands that an error does not come from within a script.
func requireNoLua(t require.TestingT, err error) {
	if err == nil {
		return
	}
	for _, words := range []string{"user_script", "attempt to", "Error running", "WRONGTYPE", "unexpected reply", "\n"} {
		require.False(t, strings.Contains(err.Error(), words), "%v", err)
	}
}
