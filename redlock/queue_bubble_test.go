package redlock_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
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
				granted := acquiring(t.Context(), q, "key")
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
				require.NoError(t, (<-granted).err)
				require.Less(t, time.Since(gone), 2*ttl+ttl/2, "its keys expire within a TTL, and it asks once a TTL")
			})
		})
	}
}

// A waiter that nobody calls asks about once in its own TTL, however long the holder's is.
func TestWaiterAsksOnceATTL(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		held := acquire(t, open(t, fleet, redlock.WithTTL(10*ttl)))
		granted := acquiring(t.Context(), open(t, fleet), "key")
		time.Sleep(ttl / 8)
		held.StopExtending()
		for i := range fleet.Nodes() {
			client := peer(t, fleet.Node(i))
			require.NoError(t, client.Do(t.Context(), client.B().Del().Key("tenure:{key}").Build()).Error())
			client.Close()
		}
		free := time.Now()
		require.NoError(t, (<-granted).err)
		require.Less(t, time.Since(free), ttl+ttl/8)
	})
}

// callFirst calls the first of a node's queue, over a connection of its own; false if nobody waits
// there: an attempt that a quorum has refused is not sent to the others any more.
func callFirst(t *testing.T, fleet *redlocktest.Fleet, node int, ms int64, release string) bool {
	t.Helper()
	client := peer(t, fleet.Node(node))
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
		client := peer(t, fleet.Node(i))
		conn, release := client.Dedicate()
		conn.SetPubSubHooks(valkey.PubSubHooks{OnMessage: func(valkey.PubSubMessage) {}})
		require.NoError(t, conn.Do(t.Context(), conn.B().Subscribe().Channel("tenure:call:"+process).Build()).Error())
		t.Cleanup(func() { release(); client.Close() })
		ask(t, fleet.Node(i), "ZADD", queueKey, number, member)
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
		held := errorAs[*redlock.HeldError](t, err)
		require.Equal(t, "frozen", held.Holder.Identity)
		require.Equal(t, turn/2, held.Holder.TTL)
		_, err = holder.Holder(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrNotHeld, "a reservation is nobody's lease")

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
// later. The key is the last holder's until then.
func TestQueueKeepsAMinimumHold(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		holder := open(t, fleet, redlock.WithIdentity("holder"))
		l := acquire(t, holder, redlock.WithMinHold(ttl/2))
		start := time.Now()
		freezeWaiter(t, fleet, "frozen")
		next := waitFor(t, open(t, fleet))
		require.NoError(t, l.Release(t.Context()))
		time.Sleep(time.Until(start.Add(ttl/2 - turn)))
		require.Equal(t, "holder", mustHolder(t, holder).Identity)
		g := next.take(t)
		require.GreaterOrEqual(t, g.at.Sub(start), ttl/2+turn)
		require.Less(t, g.at.Sub(start), ttl/2+turn+20*time.Millisecond)
	})
}

// Close leaves those who waited in the queues, which forget them after three of their TTLs.
func TestQueueForgetsThoseWhoDoNotAsk(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		acquire(t, open(t, fleet))
		const long = 2 * ttl
		gone, short := open(t, fleet, redlock.WithTTL(long)), open(t, fleet)
		w := waitFor(t, gone)
		waitFor(t, short).cancel() // a shorter life does not shorten that of the queue
		require.NoError(t, gone.Close())
		require.ErrorIs(t, (<-w.granted).err, redlock.ErrClosed)
		synctest.Wait()
		for i, n := range fleet.Nodes() {
			left := n.TTL(queueKey)
			require.Greater(t, left, 3*long-200*time.Millisecond, "node %d", i)
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
func peer(t *testing.T, n *redlocktest.Node) valkey.Client {
	t.Helper()
	client, err := valkey.NewClient(valkey.ClientOption{
		InitAddress: []string{"node"}, ForceSingleClient: true, DisableCache: true,
		DialCtxFn: func(ctx context.Context, _ string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			return n.Dial(ctx)
		},
	})
	require.NoError(t, err)
	return client
}

// ask has a node carry out a command.
func ask(t *testing.T, n *redlocktest.Node, words ...string) valkey.ValkeyResult {
	t.Helper()
	client := peer(t, n)
	defer client.Close()
	result := client.Do(t.Context(), client.B().Arbitrary(words...).Build())
	require.NoError(t, result.Error())
	return result
}

// queue returns who waits on a node, in their order.
func queue(t *testing.T, fleet *redlocktest.Fleet, node int) []string {
	t.Helper()
	members, err := ask(t, fleet.Node(node), "ZRANGE", queueKey, "0", "-1").AsStrSlice()
	require.NoError(t, err)
	return members
}

// waiter is an Acquire in the background.
type waiter struct {
	granted <-chan grant // receives once
	cancel  context.CancelFunc
}

// waitFor starts to wait for the key and returns when nothing moves any more.
func waitFor(t *testing.T, q *redlock.Quorum, opts ...redlock.LeaseOption) *waiter {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &waiter{granted: acquiring(ctx, q, "key", opts...), cancel: cancel}
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
	finish(t, l.Release)
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

// Who has just released, and who comes by, get the key after those who wait for it.
func TestQueueGoesBeforeWhoComesBy(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		delay(fleet, time.Millisecond)
		first, second, other := open(t, fleet), open(t, fleet), open(t, fleet)
		l := acquire(t, first)
		for range 10 {
			next := waitFor(t, second, redlock.WithIdentity("next"))
			require.NoError(t, l.Release(t.Context()))
			for _, q := range []*redlock.Quorum{first, other} {
				_, err := q.TryAcquire(t.Context(), "key")
				held := errorAs[*redlock.HeldError](t, err)
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
		finish(t, l.Release)
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
		var ops [waiters]atomic.Int64
		var waiting [waiters]*waiter
		for i := range waiting {
			waiting[i] = waitFor(t, open(t, fleet, told(func(redlock.TraceNodeStartData) { ops[i].Add(1) })))
		}
		for i := range called {
			time.Sleep(3 * turn) // until those are over that are told to come later
			var before [waiters]int64
			for j := range ops {
				before[j] = ops[j].Load()
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
				require.Equal(t, want, ops[j].Load()-before[j], "waiter %d, when %d was called", j, i)
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
				ended := make([]<-chan grant, waiters)
				for i := range ended {
					ended[i] = acquiring(ctx, q, fmt.Sprint("key", i), redlock.WithoutAutoExtend())
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
				for i := range ended {
					if g := <-ended[i]; g.err != nil {
						require.ErrorIs(t, g.err, context.Canceled)
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

// A key that has no quorum, as its counter is damaged on two nodes, is told of sparingly, however
// often others are acquired meanwhile. That is over when who waits for it has it, or once that one
// has given up.
func TestOutageOfAKeyIsNotEndedByOthers(t *testing.T) {
	for by, key := range map[string]string{"healed": "key", "given up": "other"} {
		t.Run(by, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				var log lockedBuffer
				q := open(t, fleet, logTo(&log))
				others := func(d time.Duration) {
					for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
						l, err := q.Acquire(t.Context(), "other")
						require.NoError(t, err)
						finish(t, l.Release)
					}
				}
				for i := range 2 {
					setCounter(t, fleet.Node(i), "key", "inf")
				}
				w := waitFor(t, q)
				others(90 * time.Second)
				require.Equal(t, 2, strings.Count(log.String(), "no quorum to acquire a key that is waited for"), "%s", &log)
				require.NotContains(t, log.String(), "a quorum answers again")
				if by == "healed" {
					setCounter(t, fleet.Node(0), "key", "1")
					finish(t, w.take(t).lease.Release)
				} else {
					w.cancel()
				}
				others(5 * time.Second)
				require.Equal(t, 1, strings.Count(log.String(), `a quorum answers again" key=`+key), "%s", &log)
			})
		})
	}
}

// counting counts how often those who acquire have asked.
func counting(attempts *atomic.Int64) redlock.Option {
	return ending(func(data redlock.TraceAcquireEndData) { attempts.Add(int64(data.Attempts)) })
}

// allTake has so many goroutines of each process take the key, once each, and returns how long that
// took and in which order they had it, those of one process after the other.
func allTake(t *testing.T, quorums []*redlock.Quorum, each int) (took time.Duration, order [][]int) {
	t.Helper()
	order = make([][]int, len(quorums))
	var mu sync.Mutex
	var work sync.WaitGroup
	held := acquire(t, quorums[0]) // until all are there, in their order
	for i := range each {
		for p, q := range quorums {
			work.Go(func() {
				l, err := q.Acquire(t.Context(), "key")
				if !assert.NoError(t, err) {
					return
				}
				mu.Lock()
				order[p] = append(order[p], i)
				mu.Unlock()
				assert.NoError(t, l.Release(t.Context()))
			})
			time.Sleep(time.Microsecond)
		}
	}
	time.Sleep(50 * time.Millisecond) // until the first ones have subscribed
	synctest.Wait()
	began := time.Now()
	require.NoError(t, held.Release(t.Context()))
	work.Wait()
	return time.Since(began), order
}

// However many goroutines of a process want a key, the key goes from one to the next as fast as
// between two, in the order in which they came. The same holds for several processes.
func TestManyOfAProcessWantOneKey(t *testing.T) {
	t.Parallel()
	for _, processes := range []int{1, 8} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				delay(fleet, time.Millisecond)
				quorums := make([]*redlock.Quorum, processes)
				for i := range quorums {
					quorums[i] = open(t, fleet)
				}
				each, few := 120/processes, 10
				var two []*redlock.Quorum
				for range 2 {
					two = append(two, open(t, fleet))
				}
				control, _ := allTake(t, two, few)
				handOver := control / time.Duration(2*few)
				require.Positive(t, handOver)
				took, order := allTake(t, quorums, each)
				for p := range order {
					require.Len(t, order[p], each)
					require.IsIncreasing(t, order[p], "process %d", p)
				}
				require.LessOrEqual(t, took, time.Duration(processes*each)*handOver*3/2, "a hand-over between two takes %v", handOver)
			})
		})
	}
}

// Those who stand in line cost the nodes nothing, also for as long as the holder goes on.
func TestWhoStandsInLineAsksNothing(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var one, many atomic.Int64
		acquire(t, open(t, fleet))
		alone, crowd := open(t, fleet, counting(&one)), open(t, fleet, counting(&many))
		waiting := []*waiter{waitFor(t, alone)}
		for range 20 {
			waiting = append(waiting, waitFor(t, crowd))
		}
		time.Sleep(10 * ttl)
		for i := range fleet.Nodes() {
			require.Len(t, queue(t, fleet, i), 2)
		}
		for _, w := range slices.Backward(waiting) { // the first of a line last: nobody comes after it
			w.cancel()
			require.ErrorIs(t, (<-w.granted).err, context.Canceled)
		}
		require.Greater(t, one.Load(), int64(5), "it asks once a TTL")
		require.InDelta(t, one.Load(), many.Load(), float64(one.Load())/2)
	})
}

// Field: one idle held lock cost 243,857 EVALSHA in 10 s. Ours is extended, waiters try once a TTL
// in case a message was lost, and servers are looked at.
func TestTrap07WaiterAndHolderAreQuiet(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		acquire(t, open(t, fleet))
		waitFor(t, open(t, fleet))
		time.Sleep(3 * ttl)
		before, ttls := commands(fleet, make([]int, 3)), 20
		time.Sleep(time.Duration(ttls) * ttl)
		for _, n := range commands(fleet, before) {
			require.InDelta(t, 12*ttls, n, float64(4*ttls))
		}
	})
}

// Each asks with its own options, once it is the first.
func TestEachInLineAsksWithItsOwnOptions(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		l := acquire(t, q)
		var waiting []*waiter
		for i := range 3 {
			waiting = append(waiting, waitFor(t, q, redlock.WithIdentity(fmt.Sprint("name", i)), redlock.WithPayload(fmt.Sprint("payload", i)), redlock.WithTTL(ttl>>i)))
		}
		for i, w := range waiting {
			require.NoError(t, l.Release(t.Context()))
			l = w.take(t).lease
			require.Equal(t, ttl>>i, l.TTL())
			holder := mustHolder(t, q)
			require.Equal(t, fmt.Sprint("name", i), holder.Identity)
			require.Equal(t, fmt.Sprint("payload", i), holder.Payload)
		}
	})
}

// Whoever gives up in line leaves it at once, and learns what the first has met. The others go on.
func TestWhoGivesUpInLine(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet, redlock.WithIdentity("holder")))
		q := open(t, fleet)
		waiting := make([]*waiter, 5)
		for i := range waiting {
			waiting[i] = waitFor(t, q)
		}
		for _, i := range []int{3, 0, 2} { // one in the middle, the first, and one that was behind it
			waiting[i].cancel()
			gaveUp := time.Now()
			err := (<-waiting[i].granted).err
			require.Zero(t, time.Since(gaveUp))
			require.ErrorIs(t, err, context.Canceled)
			held := errorAs[*redlock.HeldError](t, err)
			require.Equal(t, "holder", held.Holder.Identity)
		}
		synctest.Wait()
		released := time.Now()
		require.NoError(t, l.Release(t.Context()))
		for _, i := range []int{1, 4} {
			g := waiting[i].take(t)
			require.LessOrEqual(t, g.at.Sub(released), 10*time.Millisecond)
			require.NoError(t, g.lease.Release(t.Context()))
			released = time.Now()
		}
	})
}

// A turn that comes in the moment in which its waiter gives up is the next one's.
func TestTurnOfOneThatGivesUp(t *testing.T) {
	for range 20 {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			q := open(t, fleet)
			l := acquire(t, q)
			first, gone, next := waitFor(t, q), waitFor(t, q), waitFor(t, q)
			require.NoError(t, l.Release(t.Context()))
			l = first.take(t).lease
			go gone.cancel()
			require.NoError(t, l.Release(t.Context()))
			if g := <-gone.granted; g.err == nil {
				require.NoError(t, g.lease.Release(t.Context()))
			}
			released := time.Now()
			g := next.take(t)
			require.LessOrEqual(t, g.at.Sub(released), 10*time.Millisecond)
			require.NoError(t, g.lease.Release(t.Context()))
		})
	}
}

// A waiter gives up between the call and its arrival. It gives the key that is reserved for it to
// the next one.
func TestWaiterThatGivesUpUnderACall(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet))
		gone, next := waitFor(t, open(t, fleet)), waitFor(t, open(t, fleet))
		delay(fleet, 10*time.Millisecond)
		released := time.Now()
		go l.Release(t.Context())
		time.Sleep(5 * time.Millisecond)
		gone.cancel()
		require.ErrorIs(t, (<-gone.granted).err, context.Canceled)
		g := next.take(t)
		require.LessOrEqual(t, g.at.Sub(released), 40*time.Millisecond)
		require.NoError(t, g.lease.Release(t.Context()))
	})
}

// The Quorum is closed under a line.
func TestLineOfAClosedQuorum(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		acquire(t, open(t, fleet))
		q := open(t, fleet)
		first, second := waitFor(t, q), waitFor(t, q)
		require.NoError(t, q.Close())
		require.ErrorIs(t, (<-first.granted).err, redlock.ErrClosed)
		require.ErrorIs(t, (<-second.granted).err, redlock.ErrClosed)
	})
}

// tryAll has so many try to acquire a key in one moment.
func tryAll(n int, try func(i int) (*redlock.Lease, error)) []grant {
	all := make([]grant, n)
	var work sync.WaitGroup
	for i := range all {
		work.Go(func() {
			l, err := try(i)
			all[i] = grant{l, err, time.Now()}
		})
	}
	work.Wait()
	return all
}

// Of those who try a key that is held one asks, and the others who came while it did; then one for
// all of these. Each is told the same, but for whether the holder has its own name.
func TestThoseWhoTryShareWhatOneIsTold(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		acquire(t, open(t, fleet, redlock.WithIdentity("holder")))
		var asked atomic.Int64
		q := open(t, fleet, counting(&asked))
		delay(fleet, time.Millisecond)
		began := time.Now()
		tried := tryAll(1000, func(i int) (*redlock.Lease, error) {
			if i%2 == 0 {
				return q.TryAcquire(t.Context(), "key", redlock.WithIdentity("holder"))
			}
			return q.TryAcquire(t.Context(), "key")
		})
		require.EqualValues(t, 2, asked.Load())
		for i, g := range tried {
			held := errorAs[*redlock.HeldError](t, g.err)
			require.Equal(t, "holder", held.Holder.Identity)
			require.Equal(t, i%2 == 0, held.Self)
			require.LessOrEqual(t, g.at.Sub(began), 2*time.Millisecond)
		}
	})
}

// Of those who try a key that is free one has it, and the others are told so.
func TestThoseWhoTryAFreeKey(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var asked atomic.Int64
		q := open(t, fleet, counting(&asked))
		delay(fleet, time.Millisecond) // which all have begun by then
		won := 0
		for _, g := range tryAll(1000, func(i int) (*redlock.Lease, error) {
			return q.TryAcquire(t.Context(), "key", redlock.WithIdentity(fmt.Sprint("name", i)))
		}) {
			if g.err == nil {
				won++
				continue
			}
			require.ErrorIs(t, g.err, redlock.ErrHeld)
		}
		require.Equal(t, 1, won)
		require.LessOrEqual(t, asked.Load(), int64(3))
	})
}

// What was asked before a call tells that call nothing: the holder may have released since.
func TestWhoTriesAfterTheReleaseIsNotToldOfTheHolder(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet))
		q := open(t, fleet)
		delay(fleet, 10*time.Millisecond)
		first := trying(t.Context(), q, "key")
		time.Sleep(time.Millisecond)
		delay(fleet, 0) // but for those answers
		require.NoError(t, l.Release(t.Context()))
		second := trying(t.Context(), q, "key")
		require.ErrorIs(t, (<-first).err, redlock.ErrHeld)
		g := <-second
		require.NoError(t, g.err)
	})
}

// Nodes that fail cost those who try together what they cost one.
func TestThoseWhoTryWithoutAQuorum(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		freeze(t, fleet, 0, 1)
		began := time.Now()
		for _, g := range tryAll(100, func(int) (*redlock.Lease, error) { return q.TryAcquire(t.Context(), "key") }) {
			require.ErrorIs(t, g.err, redlock.ErrNoQuorum)
			require.LessOrEqual(t, g.at.Sub(began), 2*turn)
		}
		ctx, cancel := context.WithTimeout(t.Context(), turn/2)
		defer cancel()
		first := trying(t.Context(), q, "key")
		began = time.Now()
		_, err := q.TryAcquire(ctx, "key")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, turn/2, time.Since(began))
		require.ErrorIs(t, (<-first).err, redlock.ErrNoQuorum)
	})
}

// While the first of a line calls foreign code, others pass it: that code may wait for them.
// Foreign code of those who passed has nobody behind it, and lets nobody else pass.
func TestWhoPassedTheLineLetsNobodyPass(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		acquire(t, open(t, fleet))
		gates := []chan struct{}{make(chan struct{}), make(chan struct{})}
		var begun atomic.Int64
		q := open(t, fleet, told(func(redlock.TraceAttemptStartData) {
			if i := int(begun.Add(1)) - 1; i < len(gates) {
				<-gates[i]
			}
		}))
		delay(fleet, time.Millisecond)
		var work sync.WaitGroup
		try := func() {
			work.Go(func() {
				_, err := q.TryAcquire(t.Context(), "key")
				assert.ErrorIs(t, err, redlock.ErrHeld)
			})
			synctest.Wait()
		}
		try()
		try()
		require.EqualValues(t, 2, begun.Load(), "the second waits for foreign code")
		close(gates[0])
		synctest.Wait()
		try()
		assert.EqualValues(t, 2, begun.Load(), "the third has passed the first, which asks")
		close(gates[1])
		work.Wait()
	})
}

// distant puts a client at a distance from each node, one way and the same back.
func distant(fleet *redlocktest.Fleet, oneWay ...time.Duration) redlock.Option {
	return away(fleet, func(i int) time.Duration { return oneWay[i] })
}

// away has the data of the i-th node take a while that may change.
func away(fleet *redlocktest.Fleet, oneWay func(i int) time.Duration) redlock.Option {
	return redlock.WithClientOption(func(url string, o *valkey.ClientOption) {
		fleet.ClientOption(url, o)
		dial, i := o.DialCtxFn, slices.Index(fleet.URLs(), url)
		o.DialCtxFn = func(ctx context.Context, addr string, dialer *net.Dialer, cfg *tls.Config) (net.Conn, error) {
			conn, err := dial(ctx, addr, dialer, cfg)
			if err != nil {
				return nil, err
			}
			return relay(conn, func(int) time.Duration { return oneWay(i) }), nil
		}
	})
}

// relay is a connection whose data take a while, one way and the same back.
func relay(conn net.Conn, d func(size int) time.Duration) net.Conn {
	near, end := net.Pipe()
	go carry(conn, end, d)
	go carry(end, conn, d)
	return near
}

// carry copies what is written to one connection to another one, d later.
func carry(from, to net.Conn, d func(size int) time.Duration) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 1024)
	go func() {
		defer to.Close()
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				break
			}
		}
		for range pieces {
		}
	}()
	defer close(pieces)
	defer from.Close()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			pieces <- piece{slices.Clone(buffer[:n]), time.Now().Add(d(n))}
		}
		if err != nil {
			return
		}
	}
}

// squat gives a key to an owner value that ranks behind all others, or before them, and is never
// released.
func squat(t *testing.T, n *redlocktest.Node, random string) {
	t.Helper()
	set(t, n, "tenure:{key}", "squatter/"+strings.Repeat(random, 22))
}

func unsquat(n *redlocktest.Node) { n.FlushAll() }

// contested has one node of three dead, one that refuses, and answers that come so late.
func contested(t *testing.T, fleet *redlocktest.Fleet, late time.Duration) {
	t.Helper()
	require.NoError(t, fleet.Node(2).Kill())
	time.Sleep(time.Second)
	squat(t, fleet.Node(1), "z")
	delay(fleet, late)
}

// With a dead node beside it, what a rival left behind may be a holder's: it is reported as one
// until it has gone.
func TestOneThatDiedBesideADeadNodeIsAHolder(t *testing.T) {
	for _, random := range []string{"-", "z"} {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			const oneWay = 5 * time.Millisecond
			q := open(t, fleet, distant(fleet, oneWay, oneWay, oneWay))
			require.NoError(t, fleet.Node(2).Kill())
			squat(t, fleet.Node(1), random)
			time.Sleep(time.Second)
			start := time.Now()
			_, err := q.TryAcquire(t.Context(), "key")
			held := errorAs[*redlock.HeldError](t, err)
			require.Equal(t, []any{"squatter", 1}, []any{held.Holder.Identity, held.Holder.Nodes})
			require.LessOrEqual(t, time.Since(start), 20*2*oneWay)
			time.Sleep(time.Second)
			require.Equal(t, 1, on(fleet, "key"), "what the attempt was granted was not taken back")
			unsquat(fleet.Node(1))
			acquire(t, q)
		})
	}
}

// Two waiters that find such a rival take back what the third node has granted them, and call each
// other with that.
func TestWaitersBesideADeadNodeDoNotDriveEachOther(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var rounds atomic.Int64
		count := told(func(redlock.TraceAttemptStartData) { rounds.Add(1) })
		contested(t, fleet, 0)
		first, second := waitFor(t, open(t, fleet, count)), waitFor(t, open(t, fleet, count))
		time.Sleep(2 * time.Second)
		const seconds = 10
		rounds.Store(0)
		time.Sleep(seconds * time.Second)
		require.LessOrEqual(t, rounds.Load(), int64(2*4*2*seconds), "four rounds tell a holder, and each asks twice a second at most")
		second.cancel()
		require.ErrorIs(t, (<-second.granted).err, redlock.ErrHeld)
		unsquat(fleet.Node(1))
		start := time.Now()
		require.LessOrEqual(t, first.take(t).at.Sub(start), 1100*time.Millisecond)
	})
}

// Two owners who died keep a node each of three, so that nobody can have a quorum. A vote that
// stays split is reported as that. Nothing is left behind, and nobody is said to hold the key.
func TestAVoteThatStaysSplit(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		const oneWay = 5 * time.Millisecond
		q := open(t, fleet, distant(fleet, oneWay, oneWay, oneWay))
		squat(t, fleet.Node(1), "-")
		set(t, fleet.Node(2), "tenure:{key}", "other/"+strings.Repeat("z", 22))
		start := time.Now()
		_, err := q.TryAcquire(t.Context(), "key")
		require.NotErrorIs(t, err, redlock.ErrHeld)
		split := errorAs[*redlock.SplitError](t, err)
		require.Equal(t, 8, split.Rounds)
		require.Equal(t, redlock.Holder{Key: "key", Identity: "squatter", Nodes: 1}, split.Rival)
		require.LessOrEqual(t, time.Since(start), 90*2*oneWay)
		time.Sleep(time.Second)
		require.Equal(t, 2, on(fleet, "key"), "what the attempt was granted was not taken back")
		squat(t, fleet.Node(1), "z")
		q = open(t, fleet, distant(fleet, oneWay, oneWay, oneWay), redlock.WithTracer(events(func(ctx context.Context, kind string, _ any) context.Context {
			if kind == "AttemptEnd" {
				panic("broken")
			}
			return ctx
		})))
		require.Panics(t, func() { _, _ = q.TryAcquire(t.Context(), "key") }) // Close waits for no other round
	})
}

// The keys of a lease that was granted by its third round live since the first on one of its nodes,
// and so long lasts the lease: one node of three is dead, and another one refuses for 250 ms. A
// minimum hold counts from the round that brought the lease.
func TestALeaseOfSeveralRoundsCountsFromTheFirst(t *testing.T) {
	withQuorum(t, 3, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		contested(t, fleet, 100*time.Millisecond)
		start := time.Now()
		time.AfterFunc(250*time.Millisecond, func() { unsquat(fleet.Node(1)) })
		l := acquire(t, q, redlock.WithMinHold(3*ttl/4))
		// The rounds begin after 0, 100 + 25 and 225 + 50 ms.
		require.Equal(t, 375*time.Millisecond, time.Since(start))
		require.Equal(t, start.Add(validity), l.Deadline())
		delay(fleet, 0)
		time.Sleep(ttl / 4)
		require.NoError(t, l.Err())
		require.NoError(t, l.Release(t.Context()))
		third := start.Add(275 * time.Millisecond)
		time.Sleep(time.Until(third.Add(3*ttl/4 - 10*time.Millisecond)))
		require.Equal(t, 2, on(fleet, "key"))
		time.Sleep(time.Second)
		require.Zero(t, on(fleet, "key"))
	})
}

// A grant that comes when less than half of the TTL is left since the first round is no lease.
func TestACandidateDoesNotStayBeyondHalfOfTheTTL(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet, redlock.WithNodeTimeout(ttl/4))
		contested(t, fleet, 600*time.Millisecond)
		// The second round ends after 600 + 150 + 600 ms. A third would end after 300 + 600 more.
		tried := trying(t.Context(), q, "key")
		began := make(map[string]time.Time)
		var longest time.Duration
		for watching := true; watching; {
			select {
			case g := <-tried:
				require.Error(t, g.err)
				watching = false
			case <-time.After(10 * time.Millisecond):
				if owner, there := fleet.Node(0).Get("tenure:{key}"); there {
					if began[owner].IsZero() {
						began[owner] = time.Now()
					}
					longest = max(longest, time.Since(began[owner]))
				}
			}
		}
		require.Greater(t, longest, 1300*time.Millisecond, "it never stayed")
		require.LessOrEqual(t, longest, ttl/2)
	})
}

// An answer to an earlier round that comes when the candidate has gone on is not taken back: its
// node has granted the lease.
func TestALateGrantOfAnEarlierRoundStays(t *testing.T) {
	withQuorum(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		squat(t, fleet.Node(3), "z")
		squat(t, fleet.Node(4), "z")
		fleet.Node(2).SetDelay(ttl / 8)
		time.AfterFunc(ttl/20+time.Microsecond, func() { unsquat(fleet.Node(3)) })
		start := time.Now()
		l := acquire(t, q, redlock.WithoutAutoExtend())
		require.Less(t, time.Since(start), ttl/8)
		time.Sleep(ttl - 100*time.Millisecond - time.Since(start))
		owner, _ := fleet.Node(0).Get("tenure:{key}")
		for i := range 4 {
			now, there := fleet.Node(i).Get("tenure:{key}")
			require.True(t, there, "node %d", i)
			require.Equal(t, owner, now)
		}
		require.NoError(t, l.Release(t.Context()))
	})
}

// A node granted the first round, and answers when the candidate has given up. Its later requests
// to that node have not been sent.
func TestACandidateTakesBackWhatAnEarlierRoundWasGranted(t *testing.T) {
	withQuorum(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, q *redlock.Quorum) {
		squat(t, fleet.Node(3), "z")
		squat(t, fleet.Node(4), "z")
		fleet.Node(2).SetDelay(300 * time.Millisecond)
		start := time.Now()
		_, err := q.TryAcquire(t.Context(), "key")
		require.ErrorIs(t, err, redlock.ErrHeld)
		require.Less(t, time.Since(start), 300*time.Millisecond)
		_, there := fleet.Node(2).Get("tenure:{key}")
		require.True(t, there, "it has not granted the key, so this tests nothing")
		time.Sleep(ttl / 4)
		for i := range 3 {
			_, there := fleet.Node(i).Get("tenure:{key}")
			require.False(t, there, "node %d", i)
		}
	})
}

// A candidate that stays and is given up leaves nothing, neither what it was granted nor what is
// under way. See also TestCloseDuringAnAcquisitionLeavesNothing.
func TestACandidateThatIsGivenUp(t *testing.T) {
	for _, after := range []time.Duration{90, 110, 190, 250, 300} {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			q := open(t, fleet)
			contested(t, fleet, 100*time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), after*time.Millisecond)
			defer cancel()
			_, err := q.TryAcquire(ctx, "key")
			require.ErrorIs(t, err, context.DeadlineExceeded)
			time.Sleep(time.Second)
			require.Equal(t, 1, on(fleet, "key"), "after %d ms", after)
		})
	}
}
