package redlock_test

import (
	"context"

	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// turn is how long a key is kept for the waiter that is called: the node timeout of leases with the
// TTL of these tests.
const turn = ttl / 20

// queueKey is where a node keeps who waits for the key.
const queueKey = "tenure:{key}:wait"

// peer returns a connection to a node, as somebody else's client has it.
func peer(t *testing.T, fleet *redlocktest.Fleet, node int) valkey.Client {
	t.Helper()
	url := fleet.Node(node).URL()
	o, err := valkey.ParseURL(url)
	require.NoError(t, err)
	fleet.ClientOption(url, &o)
	o.DisableCache, o.ForceSingleClient = true, true
	client, err := valkey.NewClient(o)
	require.NoError(t, err)
	return client
}

// ask has a node carry out a command.
func ask(t *testing.T, fleet *redlocktest.Fleet, node int, words ...string) valkey.ValkeyResult {
	t.Helper()
	client := peer(t, fleet, node)
	defer client.Close()
	result := client.Do(t.Context(), client.B().Arbitrary(words...).Build())
	require.NoError(t, result.Error())
	return result
}

// queue returns who waits on a node, in their order.
func queue(t *testing.T, fleet *redlocktest.Fleet, node int) []string {
	t.Helper()
	members, err := ask(t, fleet, node, "ZRANGE", queueKey, "0", "-1").AsStrSlice()
	require.NoError(t, err)
	return members
}

// waiter is an Acquire in the background.
type waiter struct {
	granted chan grant // receives once
	cancel  context.CancelFunc
}

// waitFor starts to wait for the key and returns when nothing moves any more.
func waitFor(t *testing.T, q *redlock.Quorum, opts ...redlock.LeaseOption) *waiter {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &waiter{granted: make(chan grant, 1), cancel: cancel}
	go func() {
		l, err := q.Acquire(ctx, "key", opts...)
		w.granted <- grant{l, err, time.Now()}
	}()
	time.Sleep(50 * time.Millisecond) // until it has subscribed, and asked once more
	synctest.Wait()
	return w
}

// listening has a Quorum hear calls, as it does from its first waiter on: the next one joins a
// queue with its first attempt.
func listening(t *testing.T, holder, q *redlock.Quorum) {
	t.Helper()
	l, err := holder.TryAcquire(t.Context(), "heard")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = q.Acquire(ctx, "heard")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, l.Release(t.Context()))
	synctest.Wait()
}

// take returns the lease once it is granted.
func (w *waiter) take(t *testing.T) grant {
	t.Helper()
	select {
	case g := <-w.granted:
		require.NoError(t, g.err)
		return g
	case <-time.After(10 * ttl):
		require.FailNow(t, "the waiter was forgotten")
		panic("unreachable")
	}
}

// operations is a tracer that counts what is sent to nodes.
type operations struct {
	recorder
	all atomic.Int64
}

func (o *operations) TraceNodeStart(ctx context.Context, _ redlock.TraceNodeStartData) context.Context {
	o.all.Add(1)
	return ctx
}

func (o *operations) TraceNodeEnd(context.Context, redlock.TraceNodeEndData) {}

// Who has just released, and who comes by, get the key after those who wait for it.
func TestQueueGoesBeforeWhoComesBy(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		for _, n := range fleet.Nodes() {
			n.SetDelay(time.Millisecond)
		}
		first, second, other := open(t, fleet), open(t, fleet), open(t, fleet)
		l := acquire(t, first)
		for range 10 {
			next := waitFor(t, second, redlock.WithIdentity("next"))
			require.NoError(t, l.Release(t.Context()))
			for _, q := range []*redlock.Quorum{first, other} {
				_, err := q.TryAcquire(t.Context(), "key")
				var held *redlock.HeldError
				require.ErrorAs(t, err, &held)
				require.Equal(t, "next", held.Holder.Identity)
			}
			l = next.take(t).lease
			require.NoError(t, l.Err())
			first, second = second, first
		}
	})
}

func TestWaiterThatGaveUpIsInNobodysWay(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet))
		one := open(t, fleet)
		gone, next := waitFor(t, one), waitFor(t, open(t, fleet))
		stays := waitFor(t, one) // behind the one that goes
		for i := range 3 {
			require.Len(t, queue(t, fleet, i), 2)
		}
		gone.cancel()
		require.ErrorIs(t, (<-gone.granted).err, context.Canceled)
		time.Sleep(time.Millisecond)
		for i := range 3 {
			require.Len(t, queue(t, fleet, i), 2)
		}
		for _, w := range []*waiter{next, stays} {
			released := time.Now()
			require.NoError(t, l.Release(t.Context()))
			g := w.take(t)
			// At once, or where fewer than a quorum call in that moment, after their grace: not a
			// turn later.
			require.LessOrEqual(t, g.at.Sub(released), 10*time.Millisecond)
			l = g.lease
		}
		require.NoError(t, l.Release(t.Context()))
		synctest.Wait()
		for i, n := range fleet.Nodes() {
			require.NotContains(t, n.Keys(), queueKey, "node %d keeps a queue of nobody", i)
		}
	})
}
