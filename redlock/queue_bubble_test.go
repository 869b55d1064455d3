package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valkey-io/valkey-go"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/internal/wire"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// A call is a hint. One that promises a release far away, or in a number that no release has, must
// not keep a waiter from asking once a TTL.
func TestCallDoesNotPutAWaiterOff(t *testing.T) {
	t.Parallel()
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

// callFirst calls the first of a node's queue, over a connection of its own; false if nobody waits
// there: an attempt that a quorum has refused is not sent to the others any more.
func callFirst(t *testing.T, fleet *redlocktest.Fleet, node int, ms int64, release string) bool {
	t.Helper()
	client := peer(t, fleet, node)
	defer client.Close()
	first, err := client.Do(t.Context(), client.B().Zrange().Key(queueKey).Min("0").Max("0").Build()).AsStrSlice()
	require.NoError(t, err)
	if len(first) == 0 {
		return false
	}
	words := strings.Fields(first[0])
	message := fmt.Sprint("1 ", ms, " ", words[1], " ", release)
	require.NoError(t, client.Do(t.Context(), client.B().Publish().Channel("tenure:call:"+words[2]).Message(message).Build()).Error())
	return true
}

// A quorum refuses while another node is still busy with what was sent before. It is not asked any
// more, and the waiter has its place there all the same.
func TestWaiterJoinsABusyNode(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		holder := open(t, fleet)
		acquire(t, holder)
		q := open(t, fleet)
		listening(t, holder, q)
		fleet.Node(2).SetDelay(turn / 2)
		go q.Holder(t.Context(), "other")
		time.Sleep(time.Millisecond)
		fleet.Node(2).SetDelay(0) // but for that answer
		w := waitFor(t, q)
		require.Len(t, queue(t, fleet, 0), 1)
		require.Empty(t, queue(t, fleet, 2), "it was not busy, so this tests nothing")
		time.Sleep(turn / 2)
		synctest.Wait()
		require.Equal(t, queue(t, fleet, 0), queue(t, fleet, 2))
		w.cancel()
		<-w.granted
	})
}

// A waiter's place is by the clocks of most nodes, and not by its own.
func TestPlaceIsByTheNodesClocks(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		for i, ahead := range []time.Duration{2 * time.Hour, time.Hour, -time.Hour} {
			fleet.Node(i).JumpClock(ahead)
		}
		acquire(t, open(t, fleet))
		waitFor(t, open(t, fleet))
		time.Sleep(time.Second)
		members := queue(t, fleet, 0)
		require.Len(t, members, 1)
		place := time.UnixMicro(int64(wire.MemberNumber(members[0])))
		require.WithinDuration(t, time.Now().Add(time.Hour), place, 1100*time.Millisecond)
	})
}

// A node timeout of more than a second reserves the key all the same.
func TestReservationWithALongNodeTimeout(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		holder := open(t, fleet, redlock.WithTTL(20*time.Second), redlock.WithMaxTTL(time.Minute), redlock.WithNodeTimeout(2*time.Second))
		l := acquire(t, holder)
		freezeWaiter(t, fleet, "next")
		require.NoError(t, l.Release(t.Context()))
		_, err := holder.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrHeld, "who has just released goes before those who wait")
		time.Sleep(time.Second)
		acquire(t, holder)
	})
}

// The tests here are about waiters that are called and do not come.

// A process that has gone, and could not say so, is passed over at the release.
func TestWaiterWhoseProcessHasGoneIsPassedOver(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet))
		var dead []*redlock.Quorum
		var gone []*waiter
		for range 5 {
			dead = append(dead, open(t, fleet))
			gone = append(gone, waitFor(t, dead[len(dead)-1]))
		}
		next := waitFor(t, open(t, fleet))
		for i, w := range gone {
			require.NoError(t, dead[i].Close())
			require.ErrorIs(t, (<-w.granted).err, redlock.ErrClosed)
		}
		synctest.Wait()
		for i := range 3 {
			require.Len(t, queue(t, fleet, i), 6, "they have said goodbye, so this tests nothing")
		}
		released := time.Now()
		require.NoError(t, l.Release(t.Context()))
		g := next.take(t)
		require.Zero(t, g.at.Sub(released))
		require.NoError(t, g.lease.Release(t.Context()))
		synctest.Wait()
		for i, n := range fleet.Nodes() {
			require.NotContains(t, n.Keys(), queueKey, "node %d", i)
		}
	})
}

// freezeWaiter puts a waiter into every queue whose process listens and does nothing: one that is
// stopped.
func freezeWaiter(t *testing.T, fleet *redlocktest.Fleet, identity string) (member string) {
	t.Helper()
	process := strings.Repeat("f", 22)
	number := fmt.Sprintf("%016d", time.Now().UnixMicro())
	member = "1 " + number + " " + process + " " + identity
	for i := range fleet.Nodes() {
		client := peer(t, fleet, i)
		conn, release := client.Dedicate()
		conn.SetPubSubHooks(valkey.PubSubHooks{OnMessage: func(valkey.PubSubMessage) {}})
		require.NoError(t, conn.Do(t.Context(), conn.B().Subscribe().Channel("tenure:call:"+process).Build()).Error())
		t.Cleanup(func() { release(); client.Close() })
		ask(t, fleet, i, "ZADD", queueKey, number, member)
		ask(t, fleet, i, "HSET", "tenure:fences", "queues", strconv.FormatInt(time.Now().Add(time.Hour).UnixMilli(), 10)) // as who joins does
	}
	time.Sleep(time.Millisecond) // whoever comes now comes later
	return member
}

// A process that is stopped holds nobody up for longer than a node timeout. Who comes by meanwhile
// is told for whom the key is kept.
func TestFrozenWaiterCostsANodeTimeout(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		holder := open(t, fleet)
		l := acquire(t, holder)
		frozen := freezeWaiter(t, fleet, "frozen")
		next := waitFor(t, open(t, fleet))
		for i := range 3 {
			require.Equal(t, frozen, queue(t, fleet, i)[0])
		}
		released := time.Now()
		require.NoError(t, l.Release(t.Context()))
		time.Sleep(turn / 2)
		_, err := holder.TryAcquire(t.Context(), "key")
		var held *redlock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, "frozen", held.Holder.Identity)
		require.Equal(t, turn/2, held.Holder.TTL)

		g := next.take(t)
		require.GreaterOrEqual(t, g.at.Sub(released), turn)
		require.Less(t, g.at.Sub(released), turn+20*time.Millisecond)
		require.NoError(t, g.lease.Release(t.Context()))
		synctest.Wait()
		for i := range 3 {
			require.NotContains(t, queue(t, fleet, i), frozen, "it is called again and again")
		}
		require.NoError(t, acquire(t, holder).Release(t.Context()))
	})
}

// Who is called within a minimum hold comes when that is over, and the one after it a node timeout
// later.
func TestQueueKeepsAMinimumHold(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		holder := open(t, fleet)
		l := acquire(t, holder, redlock.WithMinHold(ttl/2))
		start := time.Now()
		freezeWaiter(t, fleet, "frozen")
		next := waitFor(t, open(t, fleet))
		require.NoError(t, l.Release(t.Context()))
		time.Sleep(time.Until(start.Add(ttl/2 + turn/2)))
		_, err := holder.TryAcquire(t.Context(), "key")
		var held *redlock.HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, "frozen", held.Holder.Identity)
		g := next.take(t)
		require.GreaterOrEqual(t, g.at.Sub(start), ttl/2+turn)
		require.Less(t, g.at.Sub(start), ttl/2+turn+20*time.Millisecond)
	})
}

// A reservation that ends too late to be one, because a clock was set back meanwhile, is in
// nobody's way.
func TestReservationOfAClockThatWasSetBack(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		l := acquire(t, q)
		freezeWaiter(t, fleet, "frozen")
		require.NoError(t, l.Release(t.Context()))
		synctest.Wait()
		_, err := q.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrHeld, "nothing is reserved, so this tests nothing")
		for _, n := range fleet.Nodes() {
			n.JumpClock(-time.Hour)
		}
		require.NoError(t, acquire(t, q).Release(t.Context()))
	})
}

// Close leaves those who waited in the queues, which forget them after three of their TTLs.
func TestQueueForgetsThoseWhoDoNotAsk(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		acquire(t, open(t, fleet))
		const long = 2 * ttl
		gone := open(t, fleet, redlock.WithTTL(long))
		w := waitFor(t, gone)
		require.NoError(t, gone.Close())
		require.ErrorIs(t, (<-w.granted).err, redlock.ErrClosed)
		synctest.Wait()
		for i, n := range fleet.Nodes() {
			left := n.TTL(queueKey)
			require.Greater(t, left, 3*long-100*time.Millisecond, "node %d", i)
			require.LessOrEqual(t, left, 3*long, "node %d", i)
		}
		time.Sleep(3 * long)
		for i, n := range fleet.Nodes() {
			require.NotContains(t, n.Keys(), queueKey, "node %d", i)
		}
	})
}

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
		gone, stays := waitFor(t, one), waitFor(t, one) // behind the one that goes
		next := waitFor(t, open(t, fleet))
		for i := range 3 {
			require.Len(t, queue(t, fleet, i), 2)
		}
		gone.cancel()
		require.ErrorIs(t, (<-gone.granted).err, context.Canceled)
		time.Sleep(time.Millisecond)
		for i := range 3 {
			require.Len(t, queue(t, fleet, i), 2)
		}
		for _, w := range []*waiter{stays, next} {
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

// Of many processes that wait a release calls one, and the others send nothing.
func TestReleaseCallsTheNextOnly(t *testing.T) {
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet))
		const waiters, called = 10, 10
		var ops [waiters]operations
		var waiting [waiters]*waiter
		for i := range waiting {
			waiting[i] = waitFor(t, open(t, fleet, redlock.WithTracer(&ops[i])))
		}
		for i := range called {
			time.Sleep(3 * turn) // until those are over that are told to come later
			var before [waiters]int64
			for j := range ops {
				before[j] = ops[j].all.Load()
			}
			released := time.Now()
			require.NoError(t, l.Release(t.Context()))
			g := waiting[i].take(t)
			require.Zero(t, g.at.Sub(released))
			synctest.Wait()
			for j := range ops {
				want := int64(0)
				if j == i || j == i-1 {
					want = 5 // an attempt on each node, and a release
				}
				require.Equal(t, want, ops[j].all.Load()-before[j], "waiter %d, when %d was called", j, i)
			}
			l = g.lease
		}
	})
}

// Who waits and reaches no quorum says so when that lasts for a TTL, and then more and more seldom.
// A crowd says it once.
func TestOutageIsSaidAndRepeatedSparingly(t *testing.T) {
	for _, waiters := range []int{1, 10} {
		t.Run(fmt.Sprint(waiters), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				var log lockedBuffer
				q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				said := func() int { return strings.Count(log.String(), "no quorum to acquire a key that is waited for") }
				acquire(t, q)
				freeze(t, fleet, 0, 1)
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, waiters)
				for i := range waiters {
					go func() {
						_, err := q.Acquire(ctx, fmt.Sprint("key", i), redlock.WithoutAutoExtend())
						ended <- err
					}()
				}
				time.Sleep(ttl / 2)
				require.Zero(t, said(), "%s", &log)
				time.Sleep(3 * ttl)
				require.Equal(t, 1, said(), "%s", &log)
				require.Contains(t, log.String(), "level=WARN msg=\"redlock: no quorum to acquire")
				require.Contains(t, log.String(), "key=key")
				time.Sleep(5 * time.Minute)
				require.GreaterOrEqual(t, said(), 2)
				require.LessOrEqual(t, said(), 4, "it is repeated sparingly: %s", &log)

				thaw(t, fleet, 0, 1)
				time.Sleep(10 * ttl)
				require.NotContains(t, log.String()[strings.LastIndex(log.String(), "answers again"):], "no quorum")
				require.Contains(t, log.String(), "a quorum answers again")
				cancel()
				synctest.Wait()
				for range waiters {
					if err := <-ended; err != nil {
						require.True(t, errors.Is(err, context.Canceled))
					}
				}
			})
		})
	}
}

// Who waits for a key gives up, twice, in two outages. The second one is not told of as having
// lasted since the first.
func TestOutageThatNobodyNotedIsOver(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var log lockedBuffer
		q := open(t, fleet, redlock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		for outage := range 2 {
			freeze(t, fleet, 0, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 5*ttl)
			_, err := q.Acquire(ctx, "key")
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			cancel()
			require.Equal(t, outage+1, strings.Count(log.String(), "no quorum to acquire a key that is waited for\" key=key"), "%s", &log)
			thaw(t, fleet, 0, 1)
			time.Sleep(10 * time.Minute)
		}
		require.NotContains(t, log.String(), "for=10m")
	})
}
