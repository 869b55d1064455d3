package redlock_test

import (
	"context"
	"strconv"
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

// acquisitions is a tracer that keeps how acquisitions ended.
type acquisitions struct {
	ends chan redlock.TraceAcquireEndData
}

func (a *acquisitions) TraceAcquireStart(ctx context.Context, _ redlock.TraceAcquireStartData) context.Context {
	return ctx
}

func (a *acquisitions) TraceAcquireEnd(_ context.Context, data redlock.TraceAcquireEndData) {
	a.ends <- data
}

// await has a waiter begin, does what frees the key after a second, and returns how the waiter's
// acquisition ended.
func await(t *testing.T, fleet *redlocktest.Fleet, free func(), opts ...redlock.Option) redlock.TraceAcquireEndData {
	t.Helper()
	tracer := &acquisitions{ends: make(chan redlock.TraceAcquireEndData, 1)}
	q := open(t, fleet, append(opts, redlock.WithTracer(tracer))...)
	done := make(chan error, 1)
	go func() {
		l, err := q.Acquire(t.Context(), "key")
		if err == nil {
			err = l.Release(t.Context())
		}
		done <- err
	}()
	synctest.Wait()
	time.Sleep(time.Second)
	free()
	require.NoError(t, <-done)
	return <-tracer.ends
}

func TestVacancyAfterARelease(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet))
		end := await(t, fleet, func() { require.NoError(t, l.Release(t.Context())) })
		require.Equal(t, redlock.FreedByRelease, end.FreedBy)
		require.Less(t, end.Vacant, 50*time.Millisecond)
		require.GreaterOrEqual(t, end.Duration, time.Second, "waiting counts")
		require.Less(t, end.Duration, 2*time.Second)
	})
}

// The keys of a holder that released within its minimum hold are free when that is over.
func TestVacancyAfterAMinimumHold(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet), redlock.WithMinHold(2*time.Second))
		end := await(t, fleet, func() { require.NoError(t, l.Release(t.Context())) })
		require.Equal(t, redlock.FreedByRelease, end.FreedBy)
		require.GreaterOrEqual(t, end.Duration, 2*time.Second)
		require.Less(t, end.Vacant, 50*time.Millisecond)
	})
}

func TestVacancyAfterAnExpiry(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet))
		end := await(t, fleet, l.StopExtending)
		require.Equal(t, redlock.FreedByExpiry, end.FreedBy)
		require.Positive(t, end.Vacant)
		require.Less(t, end.Vacant, 50*time.Millisecond)
	})
}

// A key that nobody can have, because too few nodes answer, is vacant all the time.
func TestVacancyLastsUntilAQuorumAnswers(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet), redlock.WithoutAutoExtend())
		end := await(t, fleet, func() {
			freeze(t, fleet, 0, 1)
			<-l.Context().Done()
			time.Sleep(30 * time.Second)
			thaw(t, fleet, 0, 1)
		})
		require.Equal(t, redlock.FreedByExpiry, end.FreedBy)
		require.Greater(t, end.Vacant, 29*time.Second)
		require.Less(t, end.Vacant, 35*time.Second)
	})
}

// Who need not wait, and who loses to somebody else, knows of no vacancy.
func TestNoVacancy(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		tracer := &acquisitions{ends: make(chan redlock.TraceAcquireEndData, 1)}
		q := open(t, fleet, redlock.WithTracer(tracer))
		_, err := q.Acquire(t.Context(), "key")
		require.NoError(t, err)
		end := <-tracer.ends
		require.Empty(t, end.FreedBy)
		require.Zero(t, end.Vacant)
		require.Zero(t, end.Duration)

		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		_, err = q.Acquire(ctx, "key")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		end = <-tracer.ends
		require.Empty(t, end.FreedBy)
		require.Zero(t, end.Vacant)
		require.Equal(t, 10*ttl, end.Duration)
	})
}

// opened has used its nodes once.
func opened(t *testing.T, fleet *redlocktest.Fleet, identity string, opts ...redlock.Option) *redlock.Quorum {
	q, err := redlock.Open(fleet.URLs(), append(opts, redlock.WithIdentity(identity))...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, q.Close()) })
	lease, err := q.Acquire(t.Context(), "another")
	require.NoError(t, err)
	require.NoError(t, lease.Release(t.Context()))
	synctest.Wait() // the last node has joined
	return q
}

// An attempt is granted by all nodes, too late: it has failed when it hears of that. Who was told
// meanwhile that the key is held comes when that is taken back, whether its owner asks again or
// not.
func TestLateGrantsCallTheNext(t *testing.T) {
	const oneWay = 300 * time.Millisecond // and back is more than the node timeout, 500 ms
	for name, ask := range map[string]func(context.Context, *redlock.Quorum) error{
		"of one that asks once": func(ctx context.Context, q *redlock.Quorum) error {
			_, err := q.TryAcquire(ctx, "key")
			return err
		},
		"of one that asks again": func(ctx context.Context, q *redlock.Quorum) error {
			_, err := q.Acquire(ctx, "key")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				t.Cleanup(func() { time.Sleep(time.Second) }) // what is on its way arrives
				fleet := redlocktest.StartPipes(t, 3)
				var lag atomic.Int64
				far := opened(t, fleet, "far", away(fleet, func(int) time.Duration { return time.Duration(lag.Load()) }))
				near := opened(t, fleet, "near", redlock.WithClientOption(fleet.ClientOption))
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				lag.Store(int64(oneWay))
				failed := make(chan error, 1)
				go func() { failed <- ask(ctx, far) }()
				time.Sleep(oneWay + oneWay/2) // the nodes have granted it, and it has not heard yet
				_, err := near.TryAcquire(t.Context(), "key")
				require.ErrorIs(t, err, redlock.ErrHeld)
				began := time.Now()
				lease, err := near.Acquire(t.Context(), "key")
				require.NoError(t, err)
				require.Less(t, time.Since(began), 2*time.Second, "the TTL is 10 s")
				cancel()
				require.Error(t, <-failed)
				require.NoError(t, lease.Release(t.Context()))
			})
		})
	}
}

// Two of five nodes have lost the holder's keys, so every attempt is granted by them. Those who
// wait ask no more often for that.
func TestWaitersOfAHeldKeyDoNotCallEachOther(t *testing.T) {
	const waiters, polls = 5, 6
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) }) // what is on its way arrives
		fleet := redlocktest.StartPipes(t, 5)
		long := redlock.WithMaxTTL(2 * polls * redlock.DefaultTTL)
		holder := opened(t, fleet, "holder", redlock.WithClientOption(fleet.ClientOption), long)
		lease, err := holder.Acquire(t.Context(), "key", redlock.WithTTL(2*polls*redlock.DefaultTTL), redlock.WithoutAutoExtend())
		require.NoError(t, err)
		synctest.Wait()
		for _, n := range fleet.Nodes()[:2] {
			n.FlushAll()
		}
		var attempts rounds
		ctx, cancel := context.WithTimeout(t.Context(), polls*redlock.DefaultTTL)
		defer cancel()
		var work sync.WaitGroup
		for i := range waiters {
			q := opened(t, fleet, strconv.Itoa(i), redlock.WithClientOption(fleet.ClientOption), long, redlock.WithTracer(&attempts))
			work.Go(func() {
				_, err := q.Acquire(ctx, "key")
				assert.ErrorIs(t, err, context.DeadlineExceeded)
			})
		}
		work.Wait()
		require.Less(t, attempts.all.Load(), int64(waiters*(polls+10)))
		require.NoError(t, lease.Release(t.Context()))
	})
}
