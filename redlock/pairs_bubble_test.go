package redlock_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// acquired is what came of an acquisition.
type acquired struct {
	lease *redlock.Lease
	err   error
}

// acquireAll starts an acquisition of each key and returns, in their order, channels with what came
// of them.
func acquireAll(t *testing.T, q *redlock.Quorum, keys []string, opts ...redlock.LeaseOption) []chan acquired {
	t.Helper()
	results := make([]chan acquired, len(keys))
	for i, key := range keys {
		results[i] = make(chan acquired, 1)
		go func() {
			l, err := q.TryAcquire(t.Context(), key, opts...)
			results[i] <- acquired{l, err}
		}()
		synctest.Wait()
	}
	return results
}

func names(prefix string, n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprint(prefix, i))
	}
	return keys
}

func TestManyAcquisitionsAndReleasesAreFewCommands(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		old := acquireMany(t, q, 30)
		before := commands(fleet, make([]int, 3))
		var results []chan acquired
		var releases sync.WaitGroup
		together(t, fleet, q, func() {
			results = acquireAll(t, q, names("new", 100))
			for _, l := range old {
				releases.Go(func() { assert.NoError(t, l.Release(t.Context())) })
			}
			synctest.Wait()
		})
		releases.Wait()
		for _, n := range commands(fleet, before) { // 130 acquisitions and releases, a question, and perhaps a look at the server
			require.LessOrEqual(t, n, 4)
		}
		for i := range results {
			r := <-results[i]
			require.NoError(t, r.err)
			for j, n := range fleet.Nodes() {
				owner, _ := n.Get(lockOf(r.lease))
				require.Contains(t, owner, q.Identity(), "key %d on node %d", i, j)
				require.True(t, strings.HasPrefix(owner, fmt.Sprint(r.lease.FencingToken(), " ")), "%d: %s", r.lease.FencingToken(), owner)
				require.GreaterOrEqual(t, counter(t, n, r.lease), fmt.Sprint(r.lease.FencingToken()), "other keys may share it")
			}
		}
		for _, l := range old {
			for _, n := range fleet.Nodes() {
				_, held := n.Get(lockOf(l))
				require.False(t, held)
			}
		}
	})
}

func counter(t *testing.T, n *redlocktest.Node, l *redlock.Lease) string {
	t.Helper()
	text := counterOf(n, l.Key())
	require.NotEmpty(t, text)
	return text
}

// What comes for a key after its release finds it free, also in the same batch; and who comes
// before the release does not.
func TestPacketKeepsTheOrderForAKey(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		leases := acquireMany(t, q, 3)
		var early, late []chan acquired
		var releases sync.WaitGroup
		together(t, fleet, q, func() {
			early = acquireAll(t, q, names("key", 3))
			for _, l := range leases {
				releases.Go(func() { assert.NoError(t, l.Release(t.Context())) })
			}
			synctest.Wait()
			late = acquireAll(t, q, names("key", 3))
		})
		releases.Wait()
		for i := range leases {
			require.ErrorIs(t, (<-early[i]).err, redlock.ErrHeld)
			require.NoError(t, (<-late[i]).err)
		}
	})
}
