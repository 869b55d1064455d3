package redlock_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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
