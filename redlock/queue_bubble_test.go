package redlock_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
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
