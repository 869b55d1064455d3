package redlock_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// far is the round trip to nodes that are far. It divides nothing else that there is.
const far = 20 * time.Millisecond

// bubbleFar is bubble with nodes that are far, and a Quorum that knows.
func bubbleFar(t *testing.T, test func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum)) {
	t.Helper()
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		for _, n := range fleet.Nodes() {
			n.SetDelay(far)
		}
		q := open(t, fleet)
		for _, n := range q.Nodes(t.Context()) {
			require.True(t, n.Votes)
		}
		// With the first that overlap valkey-go begins to send one command while another is on its
		// way.
		for i := range 2 {
			timeOf(t, q, fmt.Sprint("first", i))
		}
		time.Sleep(time.Second)
		test(t, fleet, q)
	})
}

// timeOf starts an acquisition and returns a channel with how long it took.
func timeOf(t *testing.T, q *redlock.Quorum, key string) chan time.Duration {
	t.Helper()
	result := make(chan time.Duration, 1)
	began := time.Now()
	go func() {
		_, err := q.TryAcquire(t.Context(), key)
		assert.NoError(t, err)
		result <- time.Since(began)
	}()
	synctest.Wait()
	return result
}

// Who comes while others' commands are on their way does not wait for their answers, up to four
// batches.
func TestFarNodesHaveSeveralBatchesInFlight(t *testing.T) {
	bubbleFar(t, func(t *testing.T, _ *redlocktest.Fleet, q *redlock.Quorum) {
		var results []chan time.Duration
		for i := range 6 {
			results = append(results, timeOf(t, q, fmt.Sprint("key", i)))
			time.Sleep(time.Millisecond)
		}
		for _, result := range results[:4] {
			require.Equal(t, far, <-result)
		}
		require.Equal(t, far+far-4*time.Millisecond, <-results[4], "it waits for the first to come back")
		require.Equal(t, far+far-5*time.Millisecond, <-results[5], "and goes with that")
	})
}

// Connections that are dead without a word are given up when they have not answered, so that a
// lease is extended on new ones.
func TestFarNodesWithDeadConnections(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, far} {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				for _, n := range fleet.Nodes() {
					n.SetDelay(delay)
				}
				var way atomic.Pointer[partition]
				way.Store(newPartition())
				q := open(t, fleet, redlock.WithTTL(10*time.Second), redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
					fleet.ClientOption(url, o)
					dial := o.DialCtxFn
					o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
						return way.Load().through(dial)(ctx, addr, d, c)
					}
				}))
				for i := range 5 {
					timeOf(t, q, fmt.Sprint("first", i))
				}
				time.Sleep(time.Second)
				l := acquire(t, q)
				way.Swap(newPartition()).cut.Store(true)
				time.Sleep(time.Minute)
				require.NoError(t, l.Err())
				require.NoError(t, l.Release(t.Context()))
			})
		})
	}
}

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
