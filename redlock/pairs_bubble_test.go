package redlock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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

// What wants something else, or more, travels by itself.
func TestPacketLeavesOutWhatIsMore(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		short, err := q.TryAcquire(t.Context(), "short hold", redlock.WithMinHold(ttl/2))
		require.NoError(t, err)
		before := commands(fleet, make([]int, 3))
		var results []chan acquired
		var releases sync.WaitGroup
		together(t, fleet, q, func() {
			for i, opts := range [][]redlock.LeaseOption{
				{}, {}, {redlock.WithTTL(ttl / 2)}, {},
			} {
				results = append(results, acquireAll(t, q, []string{fmt.Sprint("key", i)}, opts...)...)
			}
			releases.Go(func() { assert.NoError(t, short.Release(t.Context())) })
			synctest.Wait()
		})
		releases.Wait()
		for _, n := range commands(fleet, before) { // a question, two, one, one, a release, and perhaps a look at the server
			require.GreaterOrEqual(t, n, 5)
			require.LessOrEqual(t, n, 6)
		}
		for i := range results {
			r := <-results[i]
			require.NoError(t, r.err)
			for j, n := range fleet.Nodes() {
				left := n.TTL(lockOf(r.lease))
				require.Equal(t, i == 2, left <= ttl/2, "key %d on node %d: %v", i, j, left)
			}
		}
		for _, n := range fleet.Nodes() {
			_, held := n.Get(lockOf(short))
			require.True(t, held, "until the end of its minimum")
		}
	})
}

// Refusals in a packet name the holder, and those who wait in one are called.
func TestPacketWithHolders(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		holder, q := open(t, fleet), open(t, fleet)
		leases := acquireMany(t, holder, 5)
		time.Sleep(ttl / 4)
		keys := append(names("key", 5), names("free", 5)...)
		var results []chan acquired
		together(t, fleet, q, func() { results = acquireAll(t, q, keys) })
		for i := range keys {
			r := <-results[i]
			if i >= 5 {
				require.NoError(t, r.err)
				continue
			}
			var held *redlock.HeldError
			require.ErrorAs(t, r.err, &held)
			require.Equal(t, holder.Identity(), held.Holder.Identity)
			require.Greater(t, held.Holder.TTL, ttl/2)
		}
		var waiting sync.WaitGroup
		for i := range leases {
			waiting.Go(func() {
				l, err := q.Acquire(t.Context(), fmt.Sprint("key", i))
				if assert.NoError(t, err) {
					assert.NoError(t, l.Release(t.Context()))
				}
			})
		}
		time.Sleep(time.Second)
		began := time.Now()
		together(t, fleet, holder, func() {
			for _, l := range leases {
				waiting.Go(func() { assert.NoError(t, l.Release(t.Context())) })
			}
			synctest.Wait()
		})
		waiting.Wait()
		require.Less(t, time.Since(began), ttl/4, "nobody waited for an expiry")
	})
}

// A counter that is no number on one node costs that node's vote for that key, and nothing else.
func TestPacketWithAKeyThatFails(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		setCounter(t, fleet.Node(0), "new3", "no number")
		for i := range 2 {
			setCounter(t, fleet.Node(i), "new5", "no number")
		}
		var results []chan acquired
		together(t, fleet, q, func() { results = acquireAll(t, q, names("new", 8)) })
		for i := range results {
			r := <-results[i]
			if i == 5 {
				require.ErrorIs(t, r.err, redlock.ErrNoQuorum)
				continue
			}
			require.NoError(t, r.err)
			synctest.Wait()
			for j, n := range fleet.Nodes() {
				_, held := n.Get(lockOf(r.lease))
				require.Equal(t, i != 3 || j != 0, held, "key %d on node %d", i, j)
			}
		}
	})
}

// What the server process was not vouched for does not grant, not in a packet either; releases
// reach it.
func TestPacketForAnotherProcess(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		leases := acquireMany(t, q, 5)
		for i := range 2 {
			require.NoError(t, fleet.Node(i).Restart(true))
		}
		var results []chan acquired
		var releases sync.WaitGroup
		together(t, fleet, q, func() {
			results = acquireAll(t, q, names("new", 5))
			for _, l := range leases {
				releases.Go(func() { assert.NoError(t, l.Release(t.Context())) })
			}
			synctest.Wait()
		})
		releases.Wait()
		for i := range results {
			require.ErrorIs(t, (<-results[i]).err, redlock.ErrNoQuorum)
		}
		time.Sleep(time.Second)
		for _, key := range append(names("key", 5), names("new", 5)...) {
			for j, n := range fleet.Nodes() {
				_, held := n.Get("tenure:{" + key + "}")
				require.False(t, held, "%s on node %d", key, j)
			}
		}
	})
}

// An attempt that was given up while it waited to be sent is not sent, and its release is.
func TestPacketWithoutThoseThatGaveUp(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		ctx, giveUp := context.WithCancel(t.Context())
		var results []chan acquired
		given := make(chan error, 1)
		together(t, fleet, q, func() {
			go func() {
				_, err := q.TryAcquire(ctx, "given up")
				given <- err
			}()
			results = acquireAll(t, q, names("new", 5))
			giveUp()
			synctest.Wait()
		})
		require.ErrorIs(t, <-given, context.Canceled)
		for i := range results {
			require.NoError(t, (<-results[i]).err)
		}
		for _, n := range fleet.Nodes() {
			_, held := n.Get("tenure:{given up}")
			require.False(t, held)
			require.Empty(t, counterOf(n, "given up"), "it was never asked for")
		}
	})
}
