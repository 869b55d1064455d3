//go:build long

package redlock_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
)

// A server that answers with errors has no vote, and says so everywhere: on a quorum of such
// servers nobody can acquire, so none of it is healthy. Once it is well it votes again.
func TestServersThatAnswerWithErrors(t *testing.T) {
	t.Parallel()
	user := func(rules ...string) func(s *servers) {
		return func(s *servers) { s.do(append([]string{"ACL", "SETUSER", "tenure"}, rules...)) }
	}
	config := func(name, value string) func(s *servers) {
		return func(s *servers) { s.do([]string{"CONFIG", "SET", name, value}) }
	}
	grant := user(userRules(t)...)
	for _, test := range []struct {
		name       string
		hurt, heal func(s *servers)
		want       redlock.Condition
		says       string
	}{
		{"user deleted", func(s *servers) { s.do([]string{"ACL", "DELUSER", "tenure"}) }, grant, redlock.ConditionNoAuth, "WRONGPASS"},
		{"all rights taken away", user("-@all"), grant, redlock.ConditionNoPermission, "NOPERM"},
		{"no EVALSHA", user("-evalsha"), grant, redlock.ConditionNoPermission, "EVALSHA"},
		{"no keys", user("resetkeys"), grant, redlock.ConditionNoPermission, "keys of the prefix"},
		{"keys of another prefix", user("resetkeys", "~other:*"), grant, redlock.ConditionNoPermission, "keys of the prefix"},
		{"keys to read only", user("resetkeys", "%R~tenure:*"), grant, redlock.ConditionNoPermission, "keys of the prefix"},
		{"no INFO", user("-info"), grant, redlock.ConditionNoPermission, "INFO"},
		{"no TIME", user("-time"), grant, redlock.ConditionNoPermission, "TIME"},
		{"no GET", user("-get"), grant, redlock.ConditionNoPermission, "GET"},
		{"no HMGET", user("-hmget"), grant, redlock.ConditionNoPermission, "HMGET"},
		{"no HSET", user("-hset"), grant, redlock.ConditionNoPermission, "HSET"},
		{"no SET", user("-set"), grant, redlock.ConditionNoPermission, "SET"},
		{"no PTTL", user("-pttl"), grant, redlock.ConditionNoPermission, "PTTL"},
		{"no PEXPIRE", user("-pexpire"), grant, redlock.ConditionNoPermission, "PEXPIRE"},
		{"no DEL", user("-del"), grant, redlock.ConditionNoPermission, "DEL"},
		{"out of memory", config("maxmemory", "1"), config("maxmemory", "0"), redlock.ConditionOutOfMemory, "raise maxmemory"},
		{"too few replicas", config("min-replicas-to-write", "1"), config("min-replicas-to-write", "0"), redlock.Condition(wire.FewReplicas), "SET"},
		{"busy", func(s *servers) {
			for _, i := range s.all() {
				s.loop(i)
			}
		}, func(s *servers) { s.do([]string{"SCRIPT", "KILL"}) }, redlock.Condition(wire.Busy), "SCRIPT KILL; one that has written"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 3, withUser(t, "--busy-reply-threshold", "1"))
			var log lockedBuffer
			told := &serverVotes{}
			q := gatedURLs(t, s.userURLs(), logTo(&log), redlock.WithTracer(told))
			require.NoError(t, s.hold(q, "before").Release(t.Context()))
			require.NoError(t, q.Healthy())
			require.NotRegexp(t, "level=(WARN|ERROR)", log.String())

			test.hurt(s)
			healed := false
			defer func() {
				if !healed {
					test.heal(s)
				}
			}()
			// On a machine that is too slow for the timeouts, nodes fail besides, and vote again
			// without another word than that they answer.
			lines := func(want, got int, about string) {
				if !strings.Contains(log.String(), "node failing") {
					require.Equal(t, want, got, "%s: %s", about, &log)
				}
			}
			// Nobody acquires. Who asks has servers tried; else they are within a minute.
			q.Nodes(t.Context())
			require.Eventually(t, func() bool { return all(s, told, func(d redlock.TraceVoteData) bool { return !d.Votes }) }, longTTL, pollTick, "%s", &log)
			for range 3 {
				_, err := q.TryAcquire(t.Context(), "meanwhile")
				require.ErrorIs(t, err, redlock.ErrNoQuorum)
			}
			err := q.Healthy()
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			for _, n := range q.Nodes(t.Context()) {
				require.False(t, n.Votes)
				requireCondition(t, n.Err, n.Node, test.want)
				requireCondition(t, errorOf(t, err, n.Node), n.Node, test.want)
				require.ErrorContains(t, n.Err, test.says)
				data, _ := told.of(n.Node)
				require.Equal(t, string(test.want), redlock.ErrorType(data.Err))
			}
			_, changes := told.of("")
			require.Never(t, func() bool { _, now := told.of(""); return now != changes }, 3*time.Second, 100*time.Millisecond)
			lines(3, strings.Count(log.String(), "redlock: node does not vote"), "a line a node")
			refused := strings.Count(log.String(), "new connections are refused") // where one was made before the look
			lines(3, strings.Count(log.String(), "level=WARN")-refused, "and no other")
			require.LessOrEqual(t, refused, 3)

			test.heal(s)
			healed = true
			require.Eventually(t, func() bool { return q.Healthy() == nil }, longTTL, pollTick, "%s", &log)
			require.Eventually(t, func() bool {
				return all(s, told, func(d redlock.TraceVoteData) bool { return d.Votes && d.Err == nil })
			}, longTTL, pollTick)
			require.Eventually(t, func() bool {
				return !slices.ContainsFunc(q.Nodes(t.Context()), func(n redlock.NodeStatus) bool {
					return !n.Votes || n.Err != nil || len(n.Warnings) > 0
				})
			}, longTTL, pollTick, "%s", &log)
			lines(3, strings.Count(log.String(), "node votes"), "all vote again")
			lines(3, strings.Count(log.String(), "does not vote"), "nothing is repeated")
			l, err := tryUntilAnswered(t, q, "after")
			require.NoError(t, err)
			require.NoError(t, l.Release(t.Context()))
		})
	}
}

// Commands that a server does not have under their names.
func TestServersWithRenamedCommands(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		command string
		votes   bool
		warns   bool
	}{
		{"EVALSHA", false, false},
		{"SET", false, false},
		{"PTTL", false, false},
		{"EVAL", false, false},
		{"PUBLISH", true, true},
		{"ZADD", true, true},
		{"SUBSCRIBE", true, true},
		{"MGET", true, true},
		{"EVALSHA_RO", true, true},
		{"LPUSH", true, true},
	} {
		t.Run(test.command, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 3, valkeytest.WithArgs("--rename-command", test.command, "X"+test.command))
			var log lockedBuffer
			q := gatedURLs(t, s.URLs(), logTo(&log))
			if !test.votes {
				_, err := q.TryAcquire(t.Context(), "key")
				require.ErrorIs(t, err, redlock.ErrNoQuorum)
				require.ErrorIs(t, q.Healthy(), redlock.ErrNoQuorum)
				for _, n := range q.Nodes(t.Context()) {
					require.False(t, n.Votes)
					requireCondition(t, n.Err, n.Node, redlock.Condition(wire.NoCommand))
					require.ErrorContains(t, n.Err, test.command)
					require.ErrorContains(t, n.Err, "rename-command")
				}
				require.Equal(t, 3, strings.Count(log.String(), "does not vote"), "%s", &log)
				return
			}
			l := s.hold(q, "key")
			s.acquire(q, "key")
			for i := range s.Nodes() {
				if !test.warns {
					require.Empty(t, node(t, q, i).Warnings)
					continue
				}
				require.Eventually(t, func() bool { return len(node(t, q, i).Warnings) > 0 }, longTTL, pollTick)
				var ce *redlock.ConditionError
				require.ErrorAs(t, node(t, q, i).Warnings[0], &ce)
				require.Equal(t, redlock.Condition(wire.NoCommand), ce.Condition)
				require.ErrorContains(t, ce, test.command)
			}
			require.NoError(t, q.Healthy())
			require.NoError(t, l.Release(t.Context()))
		})
	}
}
