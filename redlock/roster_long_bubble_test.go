//go:build long

package redlock_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
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
