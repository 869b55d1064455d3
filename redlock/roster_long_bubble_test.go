//go:build long

package redlock_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Two processes that begin at the same moment are not both admitted, whatever answers first; and a
// further one is not in the way of what they have written.
func TestTwoListsBeginAtOnce(t *testing.T) {
	for seed := range uint64(40) {
		alone(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
			random := rand.New(rand.NewPCG(seed, 1))
			for _, n := range fleet.Nodes() {
				n.SetDelay(time.Duration(random.IntN(10)) * time.Millisecond)
			}
			lists := [][]int{{0, 1, 2}, {0, 1, 3}, {0, 3, 4}}
			first, second := lists[0], lists[1+random.IntN(2)]
			a := dialOn(t, fleet, first)
			b := dialOn(t, fleet, second)
			admitted := make([]bool, 2)
			var work sync.WaitGroup
			begin := func(i int, q *redlock.Quorum) {
				work.Go(func() {
					for range 100 {
						l, err := q.TryAcquire(t.Context(), fmt.Sprint("key ", i))
						if admitted[i] = err == nil; admitted[i] {
							finish(t, l.Release)
						}
						time.Sleep(300 * time.Millisecond)
					}
				})
			}
			begin(0, a)
			time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
			begin(1, b)
			work.Wait()
			require.NotEqual(t, admitted[0], admitted[1], "seed %d: one of them is, after a while", seed)
			winner := first
			if admitted[1] {
				winner = second
			}
			acquireAnother(t, openOn(t, fleet, winner))
		})
	}
}

func TestAnotherListIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		nodes []int
		says  string
	}{
		"one differs":      {[]int{0, 1, 3}, "has the nodes node-1.pipe:6379, node-2.pipe:6379, node-3.pipe:6379, and this process has node-1.pipe:6379, node-2.pipe:6379, node-4.pipe:6379"},
		"another number":   {[]int{0, 1, 2, 3, 4}, "and this process has node-1.pipe:6379, node-2.pipe:6379, node-3.pipe:6379, node-4.pipe:6379, node-5.pipe:6379"},
		"all but one":      {[]int{2, 3, 4}, "has the nodes node-1.pipe:6379, node-2.pipe:6379, node-3.pipe:6379"},
		"fewer":            {[]int{0}, "and this process has node-1.pipe:6379 ("},
		"another order":    {[]int{2, 0, 1}, ""},
		"none is the same": {[]int{3, 4, 5}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 6, func(t *testing.T, fleet *redlocktest.Fleet) {
				q := openOn(t, fleet, []int{0, 1, 2}, redlock.WithIdentity("replica"))
				l := acquire(t, q)
				var log lockedBuffer
				start := time.Now()
				other := openOn(t, fleet, test.nodes, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				if test.says == "" {
					require.NoError(t, other.Healthy())
					return
				}
				said := requireNoMember(t, other, redlock.ConditionAnotherList)
				require.Less(t, time.Since(start), 2*time.Second)
				for _, s := range said {
					require.Contains(t, s, test.says)
					require.Contains(t, s, "replica")
				}
				require.Contains(t, log.String(), "another_list")
				for i := 3; i < 6; i++ {
					require.False(t, keeps(t, fleet.Node(i), "list "), "it does not write which nodes it uses")
				}
				time.Sleep(time.Minute)
				requireNoMember(t, other, redlock.ConditionAnotherList)
				require.NoError(t, l.Err())
				require.NoError(t, q.Healthy())
				finish(t, l.Release)
				require.NoError(t, q.Close())
				time.Sleep(lifetime + lifetimeMore - ttl) // it may have been said again a TTL ago
				requireNoMember(t, other, redlock.ConditionAnotherList)
				time.Sleep(ttl + 6*time.Second) // two pauses after a refusal
				finish(t, acquire(t, other).Release)
				require.NoError(t, other.Healthy())
			})
		})
	}
}

// The largest TTL and skew that any process uses are used by all, for as long as it does.
func TestLongestTTLAndSkewAreEverybodys(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		other := open(t, fleet, redlock.WithMaxTTL(time.Minute), redlock.WithClockSkew(10*time.Second))
		finish(t, acquire(t, other).Release)
		time.Sleep(ttl + time.Second)
		until := func(node int) time.Duration {
			restart(t, fleet, node)
			time.Sleep(ttl)
			q.Nodes(t.Context())
			synctest.Wait()
			return time.Until(q.Nodes(t.Context())[node].QuarantinedUntil)
		}
		require.Greater(t, until(0), 70*time.Second)
		time.Sleep(2 * time.Minute)
		require.NoError(t, other.Close())
		require.True(t, q.Nodes(t.Context())[0].Votes)
		require.Greater(t, until(1), 70*time.Second, "its leases may live on")
		time.Sleep(3 * time.Minute)
		require.Less(t, until(2), 10*time.Second, "they are over")
	})
}

// A node that is gone for good is replaced under its name, one process after the other. If it comes
// back, those that had it do not count it.
func TestNodeIsReplacedWhileProcessesGoOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		leave, back func(*redlocktest.Node) error
	}{
		"ends and is restarted": {(*redlocktest.Node).Kill, func(n *redlocktest.Node) error { return n.Restart(true) }},
		"freezes and goes on":   {(*redlocktest.Node).Freeze, (*redlocktest.Node).Thaw},
		"ends and comes back":   {(*redlocktest.Node).Kill, func(n *redlocktest.Node) error { return n.Restart(false) }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 4, func(t *testing.T, fleet *redlocktest.Fleet) {
				old := named(t, fleet, map[string]int{"a": 0, "b": 1, "c": 2})
				l := acquire(t, old)
				require.NoError(t, test.leave(fleet.Node(2)))
				deployed := named(t, fleet, map[string]int{"a": 0, "b": 1, "c": 3})
				require.False(t, deployed.Nodes(t.Context())[2].Votes)
				time.Sleep(lifetime + lifetimeMore + 5*ttl) // see TestNodesAreKnownByTheirNames
				require.NoError(t, deployed.Healthy())
				require.True(t, deployed.Nodes(t.Context())[2].Votes)
				_, err := deployed.TryAcquire(t.Context(), "key")
				require.ErrorIs(t, err, redlock.ErrHeld)
				require.NoError(t, test.back(fleet.Node(2)))
				for range 20 {
					time.Sleep(ttl / 2)
					require.NoError(t, l.Err())
					if l, err := old.TryAcquire(t.Context(), "other"); err == nil {
						owner, ok := fleet.Node(2).Get("tenure:{other}")
						require.False(t, ok && strings.HasPrefix(owner, old.Identity()) && old.Nodes(t.Context())[2].Votes, "the node counts")
						finish(t, l.Release)
					}
				}
				n := old.Nodes(t.Context())[2]
				requireCondition(t, n.Err, n.Node, redlock.ConditionSeveralServers)
				require.NoError(t, deployed.Healthy())
			})
		})
	}
}

// Whatever kept nodes from keeping who uses them, and for however long: when they can again, they
// know that this process goes on, so another list is refused. Meanwhile each of them is named.
func TestListThatCouldNotBeKeptIsKeptAgain(t *testing.T) {
	t.Parallel()
	for _, hurt := range [][]int{{0}, {0, 1, 2}} {
		t.Run(fmt.Sprint(len(hurt)), func(t *testing.T) {
			bubble(t, 6, func(t *testing.T, fleet *redlocktest.Fleet) {
				var log lockedBuffer
				q := openOn(t, fleet, []int{0, 1, 2}, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				l := acquire(t, q)
				for range 2 * time.Minute / time.Second {
					for _, i := range hurt {
						set(t, fleet.Node(i), rosterKey, "no hash")
					}
					time.Sleep(time.Second)
				}
				for _, i := range hurt {
					warnings := q.Nodes(t.Context())[i].Warnings
					require.Len(t, warnings, 1)
					require.Equal(t, "damaged", redlock.ErrorType(warnings[0]))
					require.ErrorContains(t, warnings[0], "it cannot keep who uses it")
					command(t, fleet.Node(i), "DEL", rosterKey)
				}
				require.Equal(t, len(hurt), strings.Count(log.String(), "a node cannot keep who uses it"), "%s", &log)
				time.Sleep(2 * ttl)
				require.Equal(t, len(hurt), strings.Count(log.String(), "keeps who uses it again"), "%s", &log)
				for i, n := range q.Nodes(t.Context()) {
					require.Empty(t, n.Warnings)
					require.True(t, n.Votes)
					require.True(t, keeps(t, fleet.Node(i), "list "))
					for k := range 3 {
						require.True(t, keeps(t, fleet.Node(i), fmt.Sprintf("at node-%d.pipe%%3A6379 %s", k+1, runID(t, fleet.Node(k)))), "node %d", i)
					}
				}
				for _, nodes := range [][]int{{0, 3, 4}, {3, 1, 2}} {
					requireNoMember(t, openOn(t, fleet, nodes), redlock.ConditionAnotherList)
				}
				require.NoError(t, l.Err())
			})
		})
	}
}

// A server that is slow, and counts, is kept under its name: its successor at another address
// waits.
func TestSlowServerIsKeptUnderItsName(t *testing.T) {
	bubble(t, 4, func(t *testing.T, fleet *redlocktest.Fleet) {
		old := named(t, fleet, map[string]int{"a": 0, "b": 1, "c": 2}, redlock.WithIdentity("old"))
		finish(t, acquire(t, old).Release)
		fleet.Node(2).SetDelay(140 * time.Millisecond)
		time.Sleep(lifetime + lifetimeMore + 2*ttl)
		require.True(t, old.Nodes(t.Context())[2].Votes)
		require.False(t, named(t, fleet, map[string]int{"a": 0, "b": 1, "c": 3}).Nodes(t.Context())[2].Votes)
	})
}

// A lease that is extended by answers that come late keeps processes with another list out.
func TestSlowHolderKeepsAnotherListOut(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		held := acquire(t, openOn(t, fleet, []int{0, 1, 2}))
		for i := range 3 {
			fleet.Node(i).SetDelay(280 * time.Millisecond)
		}
		time.Sleep(lifetime + lifetimeMore + 40*time.Second)
		for i := range 3 {
			fleet.Node(i).SetDelay(0)
		}
		_, err := openOn(t, fleet, []int{0, 3, 4}).TryAcquire(t.Context(), held.Key())
		require.NoError(t, held.Err())
		require.Error(t, err)
	})
}

// A node that is slower than the others, and within the node timeout, votes.
func TestNodeThatIsFarVotes(t *testing.T) {
	for _, delay := range []time.Duration{55, 70, 90} {
		for _, wants := range []bool{false, true} {
			alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				fleet.Node(2).SetDelay(delay * time.Millisecond)
				q := openOn(t, fleet, []int{0, 1, 2}, redlock.WithTTL(2*time.Second))
				if wants {
					finish(t, acquire(t, q).Release)
				}
				time.Sleep(10 * time.Minute)
				require.True(t, q.Nodes(t.Context())[2].Votes, "%v", q.Nodes(t.Context())[2].Err)
			})
		}
	}
}
