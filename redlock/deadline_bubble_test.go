package redlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// losses is a LostTracer that keeps when leases were lost.
type losses struct {
	rounds
	at chan time.Time
}

func (l *losses) TraceLost(ctx context.Context, _ redlock.TraceLostData) {
	if ctx.Value(lossKey{}) == "kept" {
		l.at <- time.Now()
	}
}

type lossKey struct{}

// A lease of which nobody asks anything is lost at its deadline all the same, and the tracer hears
// of it then.
func TestLossThatNobodyAsksFor(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*redlock.Lease){"extended in vain": func(*redlock.Lease) {}, "not extended any more": (*redlock.Lease).StopExtending} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				lost := &losses{at: make(chan time.Time, 1)}
				l, err := open(t, fleet, redlock.WithTracer(lost)).TryAcquire(context.WithValue(t.Context(), lossKey{}, "kept"), "key")
				require.NoError(t, err)
				deadline := l.Deadline()
				do(l)
				freeze(t, fleet, 0, 1, 2)
				select {
				case at := <-lost.at:
					require.Equal(t, deadline, at)
				case <-time.After(3 * ttl):
					require.Fail(t, "nobody heard of the loss")
				}
			})
		})
	}
}

// Who asks for the context when the lease has ended gets one that has, with the reason.
func TestContextOfALeaseThatHasEnded(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		q := open(t, fleet)
		released := acquire(t, q)
		require.NoError(t, released.Release(t.Context()))
		require.ErrorIs(t, context.Cause(released.Context()), redlock.ErrReleased)
		lost := acquire(t, q)
		freeze(t, fleet, 0, 1, 2)
		time.Sleep(validity)
		synctest.Wait()
		require.ErrorIs(t, context.Cause(lost.Context()), redlock.ErrLost)
	})
}

// Field: a second Unlock panicked. However many release a lease at once, and whoever is first, all
// return when the first one does.
func TestTrap23EveryReleaseReturnsTheSame(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		l := acquire(t, open(t, fleet))
		freeze(t, fleet, 0, 1, 2)
		began, took := time.Now(), make(chan time.Duration, 5)
		var said [5]error
		for i := range said {
			go func() {
				said[i] = l.Release(t.Context())
				took <- time.Since(began)
			}()
		}
		first := <-took
		require.Positive(t, first)
		for range 4 {
			require.Equal(t, first, <-took)
		}
		require.Error(t, said[0])
		for _, err := range said {
			require.Equal(t, said[0], err)
		}
		require.Equal(t, said[0], l.Release(t.Context()))
	})
}

// How long Close waits for nodes that do not answer, as its doc comment says.
func TestCloseIsBounded(t *testing.T) {
	const ttl = 20 * time.Second
	for timeout, given := range map[time.Duration]time.Duration{ // after which a connection is given up
		ttl / 20: 2 * time.Second, 100 * time.Millisecond: 2 * time.Second, 1500 * time.Millisecond: 3 * time.Second, 5 * time.Second: 7 * time.Second,
	} {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			q := open(t, fleet, redlock.WithTTL(ttl), redlock.WithNodeTimeout(timeout), redlock.WithExtendInterval(ttl/8))
			l := acquire(t, q)
			synctest.Wait()
			freeze(t, fleet, 0, 1, 2)
			go func() { _ = l.Release(t.Context()) }()
			synctest.Wait()
			start := time.Now()
			require.NoError(t, q.Close())
			require.LessOrEqual(t, time.Since(start), 2*given+time.Second)
		})
	}
}

// The first waiter of a Quorum starts what Close waits for.
func TestCloseWhileTheFirstWaiterComes(t *testing.T) {
	for range 50 {
		alone(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
			acquire(t, open(t, fleet))
			q := open(t, fleet)
			done := make(chan error)
			go func() {
				_, err := q.Acquire(t.Context(), "key")
				done <- err
			}()
			require.NoError(t, q.Close())
			require.ErrorIs(t, <-done, redlock.ErrClosed)
		})
	}
}
