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
