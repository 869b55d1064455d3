//go:build long

package redlock_test

import (
	"errors"
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
		{"no EVALSHA", user("-evalsha"), grant, redlock.ConditionNoPermission, "EVALSHA"},
		{"keys to read only", user("resetkeys", "%R~tenure:*"), grant, redlock.ConditionNoPermission, "keys of the prefix"},
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
	for command, needed := range map[string]bool{"EVALSHA": true, "SET": true, "EVAL": true, "PUBLISH": false, "SUBSCRIBE": false, "MGET": false} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			s := startAged(t, 3, valkeytest.WithArgs("--rename-command", command, "X"+command))
			q := s.gated()
			if !needed {
				s.hold(q, "key")
			}
			s.acquire(q, "key") // who waits subscribes
			for i := range s.Nodes() {
				said := func(n redlock.NodeStatus) error { return errors.Join(append(n.Warnings, n.Err)...) }
				require.Eventually(t, func() bool { return said(node(t, q, i)) != nil }, longTTL, pollTick)
				n := node(t, q, i)
				require.Equal(t, !needed, n.Votes)
				var ce *redlock.ConditionError
				require.ErrorAs(t, said(n), &ce)
				require.Equal(t, redlock.Condition(wire.NoCommand), ce.Condition)
				require.ErrorContains(t, ce, command)
				require.ErrorContains(t, ce, "rename-command")
			}
		})
	}
}
