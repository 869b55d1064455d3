package redlock_test

import (
	"context"
	"fmt"
	"log/slog"
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
// of it then: whether it is extended, by hand only, or not any more.
func TestLossThatNobodyAsksFor(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		opts []redlock.LeaseOption
		do   func(*redlock.Lease)
	}{
		"extended in vain":      {nil, func(*redlock.Lease) {}},
		"not extended":          {[]redlock.LeaseOption{redlock.WithoutAutoExtend()}, func(*redlock.Lease) {}},
		"not extended any more": {nil, (*redlock.Lease).StopExtending},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
				lost := &losses{at: make(chan time.Time, 1)}
				q := open(t, fleet, redlock.WithTracer(lost))
				l, err := q.TryAcquire(context.WithValue(t.Context(), lossKey{}, "kept"), "key", test.opts...)
				require.NoError(t, err)
				deadline := l.Deadline()
				test.do(l)
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

// However many release a lease at once, and whoever is first, all return when the first one does.
func TestReleasesWaitForTheFirst(t *testing.T) {
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
	for _, test := range []struct {
		timeout time.Duration // zero for the default
		given   time.Duration // after which a connection is given up
	}{
		{0, 2 * time.Second},
		{100 * time.Millisecond, 2 * time.Second},
		{1500 * time.Millisecond, 3 * time.Second},
		{5 * time.Second, 7 * time.Second},
	} {
		t.Run(fmt.Sprint(test.timeout), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fleet := redlocktest.StartPipes(t, 3)
				opts := []redlock.Option{redlock.WithClientOption(fleet.ClientOption), redlock.WithTTL(ttl), redlock.WithLogger(slog.New(slog.DiscardHandler))}
				if test.timeout != 0 {
					opts = append(opts, redlock.WithNodeTimeout(test.timeout), redlock.WithExtendInterval(ttl/8))
				}
				q, err := redlock.Open(fleet.URLs(), opts...)
				require.NoError(t, err)
				q.Nodes(t.Context())
				l := acquire(t, q)
				freeze(t, fleet, 0)
				_, err = q.TryAcquire(t.Context(), "key") // and it is taken back
				require.ErrorIs(t, err, redlock.ErrHeld)
				freeze(t, fleet, 1, 2)
				go func() { _ = l.Release(t.Context()) }()
				synctest.Wait()
				start := time.Now()
				require.NoError(t, q.Close())
				require.LessOrEqual(t, time.Since(start), 2*test.given+2*max(test.timeout, 500*time.Millisecond))
			})
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
