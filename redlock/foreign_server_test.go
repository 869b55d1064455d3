package redlock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
)

// foreignKeys are the names under which a key has its state on a node.
func foreignKeys(key string) map[string]string {
	return map[string]string{"lock": lockKey(key), "counter": fences, "queue": lockKey(key) + ":wait"}
}

// foreignValues are commands that put something there which this library does not write.
var foreignValues = map[string]func(key string) []string{
	"list": func(key string) []string { return []string{"RPUSH", key, "x"} },
	"hash": func(key string) []string { return []string{"HSET", key, "x", "y"} },
	"set":  func(key string) []string { return []string{"SADD", key, "x"} },
}

// A value of another type under a name of the library is named with what to do, counts as absent or
// is removed; and a quorum of other nodes does not care.
func TestForeignTypes(t *testing.T) {
	t.Parallel()
	s := startServers(t, 1)
	alone := s.open(redlock.WithTTL(longTTL))
	for kind := range foreignKeys("") {
		for name, put := range foreignValues {
			if kind == "counter" && name == "hash" {
				continue // a field of its own disturbs nobody
			}
			key := kind + " " + name
			foreign := foreignKeys(key)[kind]
			s.do([]string{"DEL", foreign}, 0)
			s.do(put(foreign), 0)
			l, err := tryUntilAnswered(t, alone, key)
			switch kind {
			case "lock", "counter":
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
			default:
				require.NoError(t, err, key)
				require.NoError(t, l.Release(t.Context()), key)
			}
			if kind == "counter" {
				s.do([]string{"DEL", foreign}, 0)
			}
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
