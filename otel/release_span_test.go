package tenureotel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func TestReleaseIsTheCallersAndLinkedToTheAcquisition(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet, redlock.WithTracer(tel))
		l := acquire(t, q, "orders")
		pass(time.Second)
		ctx, caller := tel.tracer().Start(t.Context(), "caller")
		require.NoError(t, l.Release(ctx))
		settle()
		s := tel.span(t, "tenure.lease.release")
		childOf(t, s, caller.SpanContext())
		linkedTo(t, s, tel.span(t, "tenure.lease.acquire"))
		attributes := attributesOf(s)
		require.NotEmpty(t, attributes["tenure.lease.fencing_token"])
		delete(attributes, "tenure.lease.fencing_token")
		require.Equal(t, map[string]string{"tenure.lease.name": "orders", "tenure.lease.key": "orders", "tenure.lease.held": "1", "tenure.outcome": "released"}, attributes)
		require.Equal(t, sdktrace.Status{}, s.Status())
		nodes := tel.spans("tenure.node.release")
		require.Len(t, nodes, 5)
		for _, n := range nodes {
			childOf(t, n, s.SpanContext())
		}
		require.Equal(t, 1, tel.total(t, "tenure.lease.hold.duration", "tenure.lease.name", "orders", "tenure.reason", "released"))
		require.Zero(t, tel.value(t, "tenure.lease.held", "tenure.lease.name", "orders"))
	})
}

// A release with the lease's own context is no part of the acquisition that the context comes from.
func TestReleaseWithTheLeasesContextIsNoChildOfTheAcquisition(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet, redlock.WithTracer(tel))
		ctx, caller := tel.tracer().Start(t.Context(), "caller")
		l, err := q.TryAcquire(ctx, "orders")
		require.NoError(t, err)
		require.NoError(t, l.Release(l.Context()))
		settle()
		s := tel.span(t, "tenure.lease.release")
		childOf(t, s, caller.SpanContext())
		for _, n := range tel.spans("tenure.node.release") {
			childOf(t, n, s.SpanContext())
		}
	})
}

func TestFailedAndLateReleasesAreErrors(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet, redlock.WithTracer(tel))
		l := acquire(t, q, "orders", redlock.WithoutAutoExtend())
		settle()
		freeze(t, fleet, 0, 1, 2)
		failure := l.Release(t.Context())
		require.ErrorIs(t, failure, redlock.ErrTimeout)
		s := tel.span(t, "tenure.lease.release")
		require.Equal(t, sdktrace.Status{Code: codes.Error, Description: failure.Error()}, s.Status())
		require.Equal(t, "failed", attributesOf(s)["tenure.outcome"])
		require.Equal(t, "timeout", attributesOf(s)["error.type"])
		require.Equal(t, 1, tel.total(t, "tenure.lease.hold.duration", "tenure.reason", "released"), "it is not held, whoever heard of it")
		thaw(t, fleet, 0, 1, 2)
		pass(2 * ttl)
		tel.forget()

		l = acquire(t, q, "orders", redlock.WithoutAutoExtend())
		<-l.Context().Done()
		require.ErrorIs(t, l.Release(t.Context()), redlock.ErrLost)
		s = tel.span(t, "tenure.lease.release")
		require.Equal(t, codes.Error, s.Status().Code)
		require.Equal(t, "lost", attributesOf(s)["tenure.outcome"])
		require.Equal(t, "lost_deadline", attributesOf(s)["error.type"])
		require.Equal(t, 1, tel.total(t, "tenure.lease.hold.duration", "tenure.reason", "released"), "one, and the lost one is not counted again")
	})
}

// Each lease is counted once when it begins, and once when it ends.
func TestEveryLossIsCountedOnce(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		losses(t, fleet, tel)
		for _, reason := range []string{"deadline", "refused", "closed"} {
			assert.EqualValues(t, 1, tel.value(t, "tenure.lease.lost", "tenure.lease.name", reason, "tenure.reason", reason), reason)
			assert.Equal(t, 1, tel.total(t, "tenure.lease.hold.duration", "tenure.lease.name", reason, "tenure.reason", reason), reason)
			assert.Zero(t, tel.value(t, "tenure.lease.held", "tenure.lease.name", reason), reason)
		}
		sum := 0.0
		for _, p := range tel.points(t, "tenure.lease.lost") {
			sum += p.value
		}
		assert.EqualValues(t, 3, sum)
		held := tel.find(t, "tenure.lease.hold.duration", "tenure.reason", "deadline")
		assert.InDelta(t, validity.Seconds(), held.value, 1e-9)
	})
}

// A lease that is granted while its Quorum is closed has never been anybody's.
func TestAcquisitionDuringCloseLeavesNothingHeld(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet, redlock.WithTracer(tel))
		for _, n := range fleet.Nodes() {
			n.SetDelay(100 * time.Millisecond)
		}
		done := make(chan error, 1)
		go func() {
			_, err := q.TryAcquire(t.Context(), "orders")
			done <- err
		}()
		pass(50 * time.Millisecond)
		require.NoError(t, q.Close())
		require.ErrorIs(t, <-done, redlock.ErrClosed)
		settle()
		require.Zero(t, tel.value(t, "tenure.lease.held", "tenure.lease.name", "orders"))
		for _, p := range tel.matching(t, "tenure.lease.lost", "tenure.lease.name", "orders") {
			require.Zero(t, p.value)
		}
	})
}
