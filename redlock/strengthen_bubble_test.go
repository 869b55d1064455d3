package redlock_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// interval is when a lease is extended first, at the earliest.
const interval = ttl / 3 * 9 / 10

// on is how many nodes have a key.
func on(fleet *redlocktest.Fleet, key string) (n int) {
	for _, node := range fleet.Nodes() {
		if _, ok := node.Get("tenure:{" + key + "}"); ok {
			n++
		}
	}
	return n
}

// inTheWay puts another owner's key on a node.
func inTheWay(t *testing.T, fleet *redlocktest.Fleet, node int, of time.Duration) {
	t.Helper()
	ask(t, fleet, node, "SET", "tenure:{key}", "somebody/AAAAAAAAAAAAAAAAAAAAAA", "PX", fmt.Sprint(of.Milliseconds()))
}

// Also if the node's refusal comes after the grant, which does not wait for it; and if what is in
// the way goes a while later only.
func TestNodeThatRefusedIsAskedAgain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		delay time.Duration // of the node's answers
		gone  time.Duration // when the other key is
		soon  time.Duration // when the node has the lease's key
	}{
		{"at once", 0, 10 * time.Millisecond, 60 * time.Millisecond},
		{"after the grant", 20 * time.Millisecond, 10 * time.Millisecond, 120 * time.Millisecond},
		{"a distant rival", 0, 400 * time.Millisecond, 900 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				q := open(t, fleet)
				inTheWay(t, fleet, 2, test.gone)
				fleet.Node(2).SetDelay(test.delay)
				l := acquire(t, q)
				require.Equal(t, 3, on(fleet, "key"))
				time.Sleep(test.soon)
				owner, _ := fleet.Node(0).Get("tenure:{key}")
				other, _ := fleet.Node(2).Get("tenure:{key}")
				require.Equal(t, owner, other, "the node did not get the lease's key")
				require.NoError(t, l.Err())
			})
		})
	}
}

// Where all nodes grant nothing is sent before the first extension is due.
func TestUncontendedLeaseCostsNoExtension(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		tracer := &operations{}
		q := open(t, fleet, redlock.WithTracer(tracer))
		acquire(t, q)
		synctest.Wait()
		before := tracer.all.Load()
		time.Sleep(interval - 10*time.Millisecond)
		require.Equal(t, before, tracer.all.Load())
	})
}

// A waiter whose attempt was granted by a node that lacks the holder's key, and taken back there,
// is in the queue of that node all the same.
func TestWaiterJoinsANodeThatGrantedToIt(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		holder := open(t, fleet)
		acquire(t, holder, redlock.WithoutAutoExtend())
		q := open(t, fleet)
		listening(t, holder, q)
		for _, delay := range []time.Duration{0, 5 * time.Millisecond} {
			ask(t, fleet, 2, "DEL", "tenure:{key}")
			fleet.Node(2).SetDelay(delay)
			w := waitFor(t, q)
			fleet.Node(2).SetDelay(0)
			require.Equal(t, 2, on(fleet, "key"), "the attempt was not taken back")
			require.Len(t, queue(t, fleet, 0), 1)
			require.Equal(t, queue(t, fleet, 0), queue(t, fleet, 2))
			w.cancel()
			<-w.granted
			synctest.Wait()
			require.Empty(t, append(queue(t, fleet, 0), queue(t, fleet, 2)...))
		}
	})
}

// One that gave up before the answer came does not.
func TestWaiterThatGaveUpJoinsNothing(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		holder := open(t, fleet)
		acquire(t, holder, redlock.WithoutAutoExtend())
		q := open(t, fleet)
		listening(t, holder, q)
		ask(t, fleet, 2, "DEL", "tenure:{key}")
		fleet.Node(2).SetDelay(20 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_, err := q.Acquire(ctx, "key")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(100 * time.Millisecond)
		fleet.Node(2).SetDelay(0)
		require.Empty(t, queue(t, fleet, 2))
	})
}
