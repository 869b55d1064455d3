package redlock_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Who listens to a dead node tries again with growing pauses, and not at all while nobody waits.
func TestListenerLeavesADeadNodeAlone(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var dials atomic.Int64
		q := open(t, fleet, redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
			fleet.ClientOption(url, o)
			if url != fleet.Node(2).URL() {
				return
			}
			dial := o.DialCtxFn
			o.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
				dials.Add(1)
				return dial(ctx, addr, d, c)
			}
		}))
		minute := func() int64 {
			before := dials.Load()
			time.Sleep(time.Minute)
			return dials.Load() - before
		}
		wait := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			_, err := q.Acquire(ctx, "key")
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
		held := acquire(t, q)
		require.NoError(t, fleet.Node(2).Kill())
		time.Sleep(10 * time.Second)
		gate := minute() // the gate's own, and the extensions'
		require.Positive(t, gate)

		before := dials.Load()
		wait(time.Minute)
		require.Greater(t, dials.Load()-before, gate+60, "it does not try to listen, so this tests nothing")
		require.Less(t, dials.Load()-before, int64(1000), "at the shortest pause it would be 2,400 for the listener alone")
		time.Sleep(2 * ttl) // until the waiter's own releases are over
		require.Less(t, minute(), gate+gate/4, "nobody waits")

		require.NoError(t, fleet.Node(2).Restart(true))
		require.NoError(t, held.Release(t.Context()))
	})
}

// A call is a hint. One that promises a release far away, or in a number that no release has, must not keep a
// waiter from asking once a TTL.
func TestCallDoesNotPutAWaiterOff(t *testing.T) {
	for _, ms := range []int64{3_600_000, math.MaxInt64 / 1_000_000, math.MaxInt64} {
		t.Run(fmt.Sprint(ms), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				held := acquire(t, open(t, fleet))
				q := open(t, fleet)
				got := make(chan error, 1)
				go func() {
					_, err := q.Acquire(t.Context(), "key")
					got <- err
				}()
				time.Sleep(time.Second)
				called := 0
				for i := range fleet.Nodes() {
					if callFirst(t, fleet, i, ms, "x") {
						called++
					}
				}
				require.GreaterOrEqual(t, called, 2, "nobody waits")
				time.Sleep(ttl / 8)
				held.StopExtending() // the holder vanishes without a word
				gone := time.Now()
				require.NoError(t, <-got)
				require.Less(t, time.Since(gone), 2*ttl+ttl/2, "its keys expire within a TTL, and it asks once a TTL")
			})
		})
	}
}

// Calls that follow each other do not put it off further and further either.
func TestCallsDoNotPutAWaiterOffOneAfterTheOther(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		held := acquire(t, open(t, fleet))
		q := open(t, fleet)
		got := make(chan error, 1)
		go func() {
			_, err := q.Acquire(t.Context(), "key")
			got <- err
		}()
		time.Sleep(time.Second)
		held.StopExtending()
		gone := time.Now()
		for i := 0; time.Since(gone) < 10*ttl; i++ {
			callFirst(t, fleet, 0, ttl.Milliseconds(), fmt.Sprint(i))
			select {
			case err := <-got:
				require.NoError(t, err)
				require.Less(t, time.Since(gone), 2*ttl+ttl/2)
				return
			case <-time.After(ttl / 4):
			}
		}
		require.Fail(t, "the waiter never asked")
	})
}

// callFirst calls the first of a node's queue, over a connection of its own; false if nobody waits there: an attempt that a quorum has
// refused is not sent to the others any more.
func callFirst(t *testing.T, fleet *redlocktest.Fleet, node int, ms int64, release string) bool {
	t.Helper()
	url := fleet.Node(node).URL()
	o, err := valkey.ParseURL(url)
	require.NoError(t, err)
	fleet.ClientOption(url, &o)
	o.DisableCache, o.ForceSingleClient = true, true
	client, err := valkey.NewClient(o)
	require.NoError(t, err)
	defer client.Close()
	first, err := client.Do(t.Context(), client.B().Zrange().Key("tenure:{key}:wait").Min("0").Max("0").Build()).AsStrSlice()
	require.NoError(t, err)
	if len(first) == 0 {
		return false
	}
	number, rest, _ := strings.Cut(first[0], " ")
	process, _, _ := strings.Cut(rest, " ")
	message := fmt.Sprint(ms, " ", number, " ", release)
	require.NoError(t, client.Do(t.Context(), client.B().Publish().Channel("tenure:call:"+process).Message(message).Build()).Error())
	return true
}
