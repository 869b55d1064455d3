package redlock_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

const (
	membersKey   = "tenure:members"
	lifetime     = quarantine - time.Second // of what a process says
	lifetimeMore = 40 * time.Second         // for who may be cut off
)

// openOn makes a Quorum of some of the fleet's nodes.
func openOn(t *testing.T, fleet *redlocktest.Fleet, nodes []int, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	q := dialOn(t, fleet, nodes, opts...)
	q.Nodes(t.Context())
	return q
}

// dialOn does not wait.
func dialOn(t *testing.T, fleet *redlocktest.Fleet, nodes []int, opts ...redlock.Option) *redlock.Quorum {
	t.Helper()
	var urls []string
	for _, i := range nodes {
		urls = append(urls, fleet.Node(i).URL())
	}
	q, err := redlock.Open(urls, append([]redlock.Option{
		redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(ttl), redlock.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, q.Close()) })
	return q
}

// requireNoMember demands that none of the nodes votes that answer, and returns what is said.
func requireNoMember(t *testing.T, q *redlock.Quorum, want redlock.Condition) (said []string) {
	t.Helper()
	_, err := q.TryAcquire(t.Context(), "key")
	require.ErrorIs(t, err, redlock.ErrNoQuorum)
	require.ErrorIs(t, q.Healthy(), redlock.ErrNoQuorum)
	for _, n := range q.Nodes(t.Context()) {
		require.False(t, n.Votes)
		if n.Reachable {
			requireCondition(t, n.Err, n.Node, want)
			said = append(said, n.Err.Error())
		}
	}
	require.NotEmpty(t, said)
	return said
}

// Who only looks takes no part: with a wrong list it keeps nobody out, and is told so itself.
func TestWhoOnlyLooksKeepsNobodyOut(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		wrong := openOn(t, fleet, []int{0, 3, 4}, redlock.WithoutLeases(), redlock.WithIdentity("looks"))
		time.Sleep(lifetime)
		require.NoError(t, wrong.Healthy(), "nobody is there who disagrees")
		q := openOn(t, fleet, []int{0, 1, 2})
		l, err := q.TryAcquire(t.Context(), "key")
		require.NoError(t, err)
		var invalid *redlock.OptionError
		_, err = wrong.TryAcquire(t.Context(), "key")
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, "WithoutLeases", invalid.Option)
		require.ErrorContains(t, wrong.Validate("key"), "WithoutLeases")

		late := openOn(t, fleet, []int{0, 3, 4}, redlock.WithoutLeases())
		require.ErrorIs(t, late.Healthy(), redlock.ErrNoQuorum)
		n := late.Nodes(t.Context())[0]
		requireCondition(t, n.Err, n.Node, redlock.ConditionAnotherList)
		right := openOn(t, fleet, []int{0, 1, 2}, redlock.WithoutLeases(), redlock.WithIdentity("looks"))
		h, err := right.Holder(t.Context(), "key")
		require.NoError(t, err)
		require.Equal(t, l.FencingToken(), h.FencingToken)
		time.Sleep(2 * lifetime)
		require.NoError(t, q.Healthy())
		for _, n := range fleet.Nodes() {
			said, _ := n.Get(membersKey)
			require.NotContains(t, said, "looks")
		}
	})
}

// A quorum of nodes that answers is not enough: the one that is slow may be the one that disagrees.
func TestEntryAsksTheSlowNode(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		acquire(t, openOn(t, fleet, []int{0, 1, 2}))
		fleet.Node(0).SetDelay(10 * time.Millisecond)
		other := openOn(t, fleet, []int{0, 3, 4})
		time.Sleep(time.Second)
		requireNoMember(t, other, redlock.ConditionAnotherList)
	})
}

// A node that is out of reach is not waited for, and an acquisition waits no longer for that than
// for a node that does not answer.
func TestEntryDoesNotWaitForAFrozenNode(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		freeze(t, fleet, 2)
		q := dialOn(t, fleet, []int{0, 1, 2})
		start := time.Now()
		acquire(t, q)
		require.LessOrEqual(t, time.Since(start), ttl/20)
	})
}

// Processes with the restart gate and without it know servers by different ids, and are told so.
func TestMixedGatesAreRefused(t *testing.T) {
	for _, gate := range []bool{true, false} {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			opts := [][]redlock.Option{{redlock.WithoutRestartGate()}, nil}
			if !gate {
				opts[0], opts[1] = opts[1], opts[0]
			}
			held := acquire(t, open(t, fleet, append(opts[0], redlock.WithIdentity("the first"))...))
			other := dialOn(t, fleet, []int{0, 1, 2}, opts[1]...)
			time.Sleep(ttl / 2)
			n := other.Nodes(t.Context())[0]
			requireCondition(t, n.Err, n.Node, redlock.ConditionAnotherList)
			require.ErrorContains(t, n.Err, "give all processes WithoutRestartGate or none")
			require.ErrorContains(t, n.Err, "the first uses")
			require.NoError(t, held.Err())
		})
	}
}

// Two lists that meet in a node which one of them does not reach are not seen, until it does: then
// that one does not count the node, says why, and goes on.
func TestListsThatMeetOutOfReach(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := openOn(t, fleet, []int{0, 1, 2})
		held := acquire(t, q)
		var healed atomic.Bool
		var log lockedBuffer
		other := openOn(t, fleet, []int{0, 3, 4}, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
			redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
				fleet.ClientOption(url, o)
				if dial := o.DialCtxFn; url == fleet.Node(0).URL() {
					o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
						if !healed.Load() {
							return nil, fmt.Errorf("cut off")
						}
						return dial(ctx, addr, d, c)
					}
				}
			}))
		second := acquire(t, other)
		require.NoError(t, held.Err(), "this is what is not seen")
		healed.Store(true)
		time.Sleep(ttl)
		require.NoError(t, held.Err())
		require.NoError(t, second.Err())
		n := other.Nodes(t.Context())[0]
		requireCondition(t, n.Err, n.Node, redlock.ConditionAnotherList)
		require.Contains(t, log.String(), "another_list")
		requireCondition(t, other.Healthy(), n.Node, redlock.ConditionAnotherList)
		require.NoError(t, q.Healthy())
		require.True(t, q.Nodes(t.Context())[0].Votes)
	})
}

// What a process finds later costs it nothing, and is said in the log, by Nodes, by Healthy and to
// tracers.
func TestAnotherListInFlightIsReported(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log lockedBuffer
		v := &votes{acquisitions: acquisitions{make(chan redlock.TraceAcquireEndData, 50)}, told: make(map[string][]redlock.TraceVoteData)}
		q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), redlock.WithTracer(v))
		l := acquire(t, q)
		addr := fleet.Node(1).URL()[len("valkey://"):]
		v.take(addr)
		now := time.Now().UnixMilli()
		set(t, fleet.Node(1), membersKey, fmt.Sprintf("1 3 4000 %d 2000 %d 6000 %d - -\n%040d %d far%%3A1 somebody here", now, now, now, 7, now+ttl.Milliseconds()))
		time.Sleep(ttl + time.Second)
		require.NoError(t, l.Err())
		var ne *redlock.NodeError
		require.ErrorAs(t, q.Healthy(), &ne)
		require.Equal(t, string(redlock.ConditionAnotherList), ne.ErrorType())
		require.ErrorContains(t, ne, "far:1")
		require.ErrorContains(t, ne, "somebody")
		n := q.Nodes(t.Context())[1]
		require.True(t, n.Votes)
		require.Len(t, n.Warnings, 1)
		require.Equal(t, string(redlock.ConditionAnotherList), redlock.ErrorType(n.Warnings[0]))
		require.Equal(t, 1, strings.Count(log.String(), "level=ERROR"), "%s", &log)
		told := v.take(addr)
		require.NotEmpty(t, told)
		require.True(t, told[len(told)-1].Votes)
		require.Equal(t, string(redlock.ConditionAnotherList), redlock.ErrorType(told[len(told)-1].Warning))
		time.Sleep(lifetime + 2*ttl)
		require.NoError(t, q.Healthy())
		require.Contains(t, log.String(), "agree on their nodes again")
		require.NoError(t, l.Err())
	})
}

// The first line of one node's list, damaged in whatever way, keeps a new process out until the
// next look of one that goes on, which names the node and the key.
func TestDamagedMembersOfOneNode(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(string) string{
		"a digit":          func(head string) string { return "1 4" + head[3:] },
		"another notation": func(head string) string { return strings.Replace(head, " ", " 1e4 ", 2) },
		"cut":              func(head string) string { return head[:8] },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				var log lockedBuffer
				q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				l := acquire(t, q)
				time.Sleep(ttl + 100*time.Millisecond)
				text, _ := fleet.Node(0).Get(membersKey)
				head, lines, _ := strings.Cut(text, "\n")
				set(t, fleet.Node(0), membersKey, damage(head)+"\n"+lines)
				fresh := openOn(t, fleet, []int{0, 1, 2})
				said := requireNoMember(t, fresh, redlock.ConditionAnotherList)
				require.Contains(t, said[0], membersKey)
				time.Sleep(2 * ttl)
				require.NoError(t, fresh.Healthy())
				require.NoError(t, q.Healthy())
				require.NoError(t, l.Err())
				require.Regexp(t, "level=ERROR.*node=node-1.pipe:6379.*"+membersKey, log.String())
				require.Equal(t, 1, strings.Count(log.String(), "processes agree on their nodes again"), "%s", &log)
			})
		})
	}
}

// A TTL that something else has written to one node counts as if a process had it: servers that
// were restarted have no vote, and say which key on which node that is by. Once it is deleted, or
// as old as its lifetime, they vote.
func TestTTLThatNobodyHas(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lifetime time.Duration
		deleted  bool
	}{"is deleted": {48 * time.Hour, true}, "grows old": {10 * time.Second, false}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				now := time.Now().UnixMilli()
				set(t, fleet.Node(0), membersKey, fmt.Sprintf("1 3 86400000 %[2]d 2000 %[2]d %[1]d %[2]d - -", test.lifetime.Milliseconds(), now))
				restart(t, fleet, 1)
				restart(t, fleet, 2)
				q := openOn(t, fleet, []int{0, 1, 2})
				time.Sleep(2 * quarantine)
				require.ErrorIs(t, q.Healthy(), redlock.ErrNoQuorum)
				n := q.Nodes(t.Context())[1]
				requireCondition(t, n.Err, n.Node, redlock.ConditionQuarantined)
				require.ErrorContains(t, n.Err, "a TTL of 24h0m0s by "+membersKey+" on "+nodeAddr(fleet.Node(0)))
				require.ErrorContains(t, n.Err, "delete the key")
				if test.deleted {
					time.Sleep(2 * time.Minute)
					require.ErrorIs(t, q.Healthy(), redlock.ErrNoQuorum)
					command(t, fleet.Node(0), "DEL", membersKey)
					time.Sleep(5 * ttl) // two looks, and a moment
				} else {
					time.Sleep(10*time.Second + lifetimeMore)
				}
				require.NoError(t, q.Healthy())
			})
		})
	}
}

// A process that uses a longer TTL may begin beside others, and is known to those that begin later.
func TestLongestTTLIsKnownFromTheBeginning(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		acquire(t, open(t, fleet, redlock.WithMaxTTL(time.Minute)))
		restart(t, fleet, 1)
		time.Sleep(20 * time.Second)
		q := open(t, fleet)
		time.Sleep(ttl)
		require.NoError(t, q.Healthy())
		n := q.Nodes(t.Context())[1]
		requireCondition(t, n.Err, n.Node, redlock.ConditionQuarantined)
	})
}

// A server that is restarted without its data hears who uses it before it votes, so that it does
// not let others in.
func TestSuccessorIsTold(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := openOn(t, fleet, []int{0, 1, 2})
		restart(t, fleet, 0)
		finish(t, acquire(t, q).Release)
		for q.Nodes(t.Context())[0].QuarantinedUntil.IsZero() {
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		told, _ := fleet.Node(0).Get(membersKey)
		require.Equal(t, 2, strings.Count(told, "\n"), "the other two: %s", told)
		other := openOn(t, fleet, []int{0, 3, 4})
		require.ErrorIs(t, other.Healthy(), redlock.ErrNoQuorum)
		n := other.Nodes(t.Context())[1]
		requireCondition(t, n.Err, n.Node, redlock.ConditionAnotherList)
		time.Sleep(2 * quarantine)
		require.True(t, q.Nodes(t.Context())[0].Votes)
	})
}

// Processes that have other addresses for the servers need not wait longer than a lifetime for one
// that was restarted, if somebody has seen that.
func TestServersWithOtherAddresses(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		restart(t, fleet, 0)
		for q.Nodes(t.Context())[0].QuarantinedUntil.IsZero() {
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		require.NoError(t, q.Close())
		time.Sleep(quarantine)
		var urls []string
		for i := range 3 {
			urls = append(urls, fmt.Sprintf("valkey://proxy-%d:1", i))
		}
		other, err := redlock.Open(urls, redlock.WithTTL(ttl), redlock.WithLogger(slog.New(slog.DiscardHandler)),
			redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
				n := fleet.Node(slices.Index(urls, url))
				fleet.ClientOption(n.URL(), o)
			}))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, other.Close()) })
		acquire(t, other)
		for _, n := range other.Nodes(t.Context()) {
			require.True(t, n.Votes, "%+v", n)
		}
	})
}

// A server that comes when the others do not answer may be one that these have replaced: it does
// not count before they answer, or have been silent for so long that the process begins again.
func TestNothingIsAddedWithoutTheOthers(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		freeze(t, fleet, 2)
		q := openOn(t, fleet, []int{0, 1, 2})
		finish(t, acquire(t, q).Release)
		freeze(t, fleet, 0)
		thaw(t, fleet, 2)
		for range 15 {
			time.Sleep(time.Second)
			require.False(t, q.Nodes(t.Context())[2].Votes)
		}
		thaw(t, fleet, 0)
		time.Sleep(ttl)
		require.True(t, q.Nodes(t.Context())[2].Votes)
		freeze(t, fleet, 1)
		finish(t, acquire(t, q).Release)
	})
	t.Run("until they have been silent for long", func(t *testing.T) {
		bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			freeze(t, fleet, 2)
			q := openOn(t, fleet, []int{0, 1, 2})
			freeze(t, fleet, 0)
			thaw(t, fleet, 2)
			time.Sleep(40 * time.Second)
			finish(t, acquire(t, q).Release)
		})
	})
}
