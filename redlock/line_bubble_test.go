package redlock_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// rounds is a tracer that counts how often those who acquire have asked. It is told of nothing
// while they ask, so none of them is out of its line, see lines.
type rounds struct{ all atomic.Int64 }

func (r *rounds) TraceAcquireStart(ctx context.Context, _ redlock.TraceAcquireStartData) context.Context {
	return ctx
}

func (r *rounds) TraceAcquireEnd(_ context.Context, data redlock.TraceAcquireEndData) {
	r.all.Add(int64(data.Attempts))
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
				for _, n := range fleet.Nodes() {
					n.SetDelay(time.Millisecond)
				}
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
		var one, many rounds
		acquire(t, open(t, fleet))
		alone, crowd := open(t, fleet, redlock.WithTracer(&one)), open(t, fleet, redlock.WithTracer(&many))
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
		require.Greater(t, one.all.Load(), int64(5), "it asks once a TTL")
		require.InDelta(t, one.all.Load(), many.all.Load(), float64(one.all.Load())/2)
	})
}

// Field: one idle held lock cost 243,857 EVALSHA in 10 s. Ours is extended, waiters try once a TTL in
// case a message was lost, and servers are looked at.
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
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		l := acquire(t, q)
		var waiting []*waiter
		for i := range 3 {
			waiting = append(waiting, waitFor(t, q, redlock.WithIdentity(fmt.Sprint("name", i)), redlock.WithPayload(fmt.Sprint("payload", i)), redlock.WithTTL(ttl>>i)))
		}
		for i, w := range waiting {
			require.NoError(t, l.Release(t.Context()))
			l = w.take(t).lease
			require.Equal(t, ttl>>i, l.TTL())
			holder, err := q.Holder(t.Context(), "key")
			require.NoError(t, err)
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
			var held *redlock.HeldError
			require.ErrorAs(t, err, &held)
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

// tryAll has so many call TryAcquire in one moment.
func tryAll(t *testing.T, q *redlock.Quorum, n int, opts func(i int) []redlock.LeaseOption) []grant {
	t.Helper()
	all := make([]grant, n)
	var work sync.WaitGroup
	for i := range all {
		work.Go(func() {
			l, err := q.TryAcquire(t.Context(), "key", opts(i)...)
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
		var tracer rounds
		q := open(t, fleet, redlock.WithTracer(&tracer))
		for _, n := range fleet.Nodes() {
			n.SetDelay(time.Millisecond)
		}
		began := time.Now()
		tried := tryAll(t, q, 1000, func(i int) []redlock.LeaseOption {
			if i%2 == 0 {
				return []redlock.LeaseOption{redlock.WithIdentity("holder")}
			}
			return nil
		})
		require.EqualValues(t, 2, tracer.all.Load())
		for i, g := range tried {
			var held *redlock.HeldError
			require.ErrorAs(t, g.err, &held)
			require.Equal(t, "holder", held.Holder.Identity)
			require.Equal(t, i%2 == 0, held.Self)
			require.LessOrEqual(t, g.at.Sub(began), 2*time.Millisecond)
		}
	})
}

// Of those who try a key that is free one has it, and the others are told so.
func TestThoseWhoTryAFreeKey(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		var tracer rounds
		q := open(t, fleet, redlock.WithTracer(&tracer))
		for _, n := range fleet.Nodes() {
			n.SetDelay(time.Millisecond) // which all have begun by then
		}
		won := 0
		for _, g := range tryAll(t, q, 1000, func(i int) []redlock.LeaseOption {
			return []redlock.LeaseOption{redlock.WithIdentity(fmt.Sprint("name", i))}
		}) {
			if g.err == nil {
				won++
				continue
			}
			require.ErrorIs(t, g.err, redlock.ErrHeld)
		}
		require.Equal(t, 1, won)
		require.LessOrEqual(t, tracer.all.Load(), int64(3))
	})
}

// What was asked before a call tells that call nothing: the holder may have released since.
func TestWhoTriesAfterTheReleaseIsNotToldOfTheHolder(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet))
		q := open(t, fleet)
		delay := func(d time.Duration) {
			for _, n := range fleet.Nodes() {
				n.SetDelay(d)
			}
		}
		delay(10 * time.Millisecond)
		first := tryAcquire(t.Context(), q, "key")
		time.Sleep(time.Millisecond)
		delay(0) // but for those answers
		require.NoError(t, l.Release(t.Context()))
		second := tryAcquire(t.Context(), q, "key")
		require.ErrorIs(t, (<-first).err, redlock.ErrHeld)
		g := <-second
		require.NoError(t, g.err)
	})
}

// Nodes that fail cost those who try together what they cost one.
func TestThoseWhoTryWithoutAQuorum(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		freeze(t, fleet, 0, 1)
		began := time.Now()
		for _, g := range tryAll(t, q, 100, func(int) []redlock.LeaseOption { return nil }) {
			require.ErrorIs(t, g.err, redlock.ErrNoQuorum)
			require.LessOrEqual(t, g.at.Sub(began), 2*turn)
		}
		ctx, cancel := context.WithTimeout(t.Context(), turn/2)
		defer cancel()
		first := tryAcquire(t.Context(), q, "key")
		began = time.Now()
		_, err := q.TryAcquire(ctx, "key")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, turn/2, time.Since(began))
		require.ErrorIs(t, (<-first).err, redlock.ErrNoQuorum)
	})
}

// gated is a tracer that keeps the first attempts from going on, each until its gate is closed.
type gated struct {
	rounds
	begun atomic.Int64
	gates []chan struct{}
}

func (g *gated) TraceAttemptStart(ctx context.Context, _ redlock.TraceAttemptStartData) context.Context {
	if i := int(g.begun.Add(1)) - 1; i < len(g.gates) {
		<-g.gates[i]
	}
	return ctx
}

func (g *gated) TraceAttemptEnd(context.Context, redlock.TraceAttemptEndData) {}

// While the first of a line calls foreign code, others pass it: that code may wait for them.
// Foreign code of those who passed has nobody behind it, and lets nobody else pass.
func TestWhoPassedTheLineLetsNobodyPass(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		acquire(t, open(t, fleet))
		tracer := &gated{gates: []chan struct{}{make(chan struct{}), make(chan struct{})}}
		q := open(t, fleet, redlock.WithTracer(tracer))
		for _, n := range fleet.Nodes() {
			n.SetDelay(time.Millisecond)
		}
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
		require.EqualValues(t, 2, tracer.begun.Load(), "the second waits for foreign code")
		close(tracer.gates[0])
		synctest.Wait()
		try()
		assert.EqualValues(t, 2, tracer.begun.Load(), "the third has passed the first, which asks")
		close(tracer.gates[1])
		work.Wait()
	})
}
