//go:build long

package redlock_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/redlock"
)

// requireAdmitted waits until a process counts a quorum, and returns how long that took: a lifetime
// and 20 s after those that had its nodes.
func requireAdmitted(t *testing.T, q *redlock.Quorum) time.Duration {
	t.Helper()
	start := time.Now()
	require.Eventually(t, func() bool { return q.Healthy() == nil }, 15*longTTL, pollTick)
	return time.Since(start)
}

// compete has processes want one key for a while, and demands that it is never held twice. It
// returns how often each had it.
func compete(t *testing.T, d time.Duration, qs ...*redlock.Quorum) []int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var holder atomic.Pointer[redlock.Lease]
	had := make([]int, len(qs))
	var work sync.WaitGroup
	for i, q := range qs {
		work.Go(func() {
			for ctx.Err() == nil {
				l, err := q.TryAcquire(ctx, "wanted")
				if err != nil {
					time.Sleep(pollTick)
					continue
				}
				had[i]++
				if was := holder.Swap(l); was != nil && was.Err() == nil && l.Err() == nil {
					assert.Fail(t, "two leases are live", "%v and %v", was.FencingToken(), l.FencingToken())
				}
				time.Sleep(pollTick)
				holder.CompareAndSwap(l, nil)
				_ = l.Release(context.WithoutCancel(ctx))
			}
		})
	}
	work.Wait()
	return had
}

// A node that has died for good is replaced under its name, one process after the other. Should it
// come back, it has no vote.
func TestRollingReplacementOfANode(t *testing.T) {
	t.Parallel()
	s := startAged(t, 4)
	names := func(nodes ...int) (urls []string) {
		for i, n := range nodes {
			urls = append(urls, s.Node(n).URL()+fmt.Sprint("?name=", i))
		}
		return urls
	}
	old, held := fleetOf(t, names(0, 1, 2), 2, redlock.WithTTL(4*serverTTL))
	s.kill(2)
	deployed := gatedURLs(t, names(0, 1, 3), redlock.WithTTL(4*serverTTL), redlock.WithIdentity("deployed"))
	l, err := tryUntilAnswered(t, deployed, "of the deployed")
	require.NoError(t, err)
	_, err = tryUntilAnswered(t, old[0], "of the deployed")
	require.ErrorIs(t, err, redlock.ErrHeld)
	requireVotes(t, deployed, 2, 15*longTTL)
	require.NoError(t, l.Release(t.Context()))
	require.Eventually(t, func() bool { // each process has the key some time
		return !slices.Contains(compete(t, 2*time.Second, append([]*redlock.Quorum{deployed}, old...)...), 0)
	}, patience, pollTick)

	s.restart(2)
	var seen [2]bool
	require.Eventually(t, func() bool {
		for i, q := range old {
			n := q.Nodes(t.Context())[2]
			require.False(t, n.Votes, "the node counts again")
			seen[i] = seen[i] || redlock.ErrorType(n.Err) == string(redlock.ConditionSeveralServers)
		}
		return seen[0] && seen[1]
	}, patience, pollTick)
	for range 5 {
		compete(t, serverTTL, append([]*redlock.Quorum{deployed}, old...)...)
		for _, q := range old {
			require.False(t, q.Nodes(t.Context())[2].Votes, "the node counts again")
		}
	}
	require.NoError(t, deployed.Healthy())
	for _, l := range held {
		require.NoError(t, l.Err())
	}
}

// stoppedEnv has a process of the next test's be the one that is stopped.
const stoppedEnv = "TENURE_TEST_STOPPED_MEMBER"

// A process that stood still for so long that its nodes were taken for free finds out before it has
// anything of them.
func TestProcessThatStoodStillWhileOthersBegan(t *testing.T) {
	if urls := os.Getenv(stoppedEnv); urls != "" {
		q, err := redlock.Open(strings.Split(urls, ","), redlock.WithTTL(serverTTL), redlock.WithClockSkew(time.Millisecond),
			redlock.WithLogger(slog.New(slog.DiscardHandler)))
		require.NoError(t, err)
		for { // until it is killed
			l, err := q.TryAcquire(t.Context(), "key")
			fmt.Println(err == nil && l.Err() == nil, err)
			_ = l.Release(t.Context())
			time.Sleep(pollTick)
		}
	}
	t.Parallel()
	s := startAged(t, 5)
	cmd, err := child.Self(stoppedEnv + "=" + strings.Join(s.three(0, 1, 2), ","))
	require.NoError(t, err)
	cmd.Args = append(cmd.Args, "-test.run", "^TestProcessThatStoodStillWhileOthersBegan$")
	var has, refused atomic.Int64
	cmd.Stdout = child.Lines(func(line string) {
		switch {
		case strings.HasPrefix(line, "true"):
			has.Add(1)
		case strings.Contains(line, "another_list"):
			refused.Add(1)
		}
	})
	process, err := child.Start(cmd)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, process.Kill()) })
	require.Eventually(t, func() bool { return has.Load() > 10 }, patience, pollTick)
	require.NoError(t, process.Freeze())

	other := gatedURLs(t, s.three(0, 3, 4), redlock.WithTTL(longTTL))
	require.Eventually(t, func() bool {
		return redlock.ErrorType(other.Nodes(t.Context())[0].Err) == string(redlock.ConditionAnotherList)
	}, patience, pollTick)
	t.Log("admitted after", requireAdmitted(t, other))
	l, err := tryUntilAnswered(t, other, "key")
	require.NoError(t, err)
	had := has.Load()
	require.NoError(t, process.Thaw())
	require.Eventually(t, func() bool { return refused.Load() > 20 }, patience, pollTick)
	require.NoError(t, l.Err())
	require.Equal(t, had, has.Load(), "two leases were live")
}
