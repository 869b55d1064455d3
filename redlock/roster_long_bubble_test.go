//go:build long

package redlock_test

import (
	"fmt"
	"log/slog"

	"strings"

	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

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
