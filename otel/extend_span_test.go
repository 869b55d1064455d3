package tenureotel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func TestFailedExtensionIsASpanMadeAfterwards(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet, redlock.WithTracer(tel))
		ctx, caller := tel.tracer().Start(t.Context(), "caller")
		l, err := q.TryAcquire(ctx, "orders", redlock.WithoutAutoExtend())
		require.NoError(t, err)
		settle()
		pass(time.Second)
		freeze(t, fleet, 0, 1, 2)
		start := time.Now()
		failure := l.Extend(t.Context())
		require.ErrorIs(t, failure, redlock.ErrTimeout)
		end := time.Now()
		thaw(t, fleet, 0, 1, 2)
		s := tel.span(t, "tenure.lease.extend")
		require.True(t, s.StartTime().Equal(start), "%v, not %v", s.StartTime(), start)
		require.True(t, s.EndTime().Equal(end), "%v, not %v", s.EndTime(), end)
		require.False(t, s.Parent().IsValid(), "it is nobody's child")
		require.NotEqual(t, caller.SpanContext().TraceID(), s.SpanContext().TraceID())
		linkedTo(t, s, tel.span(t, "tenure.lease.acquire"))
		require.Equal(t, sdktrace.Status{Code: codes.Error, Description: failure.Error()}, s.Status())
		require.Equal(t, map[string]string{
			"tenure.lease.name": "orders", "tenure.lease.key": "orders", "tenure.lease.ttl": "4", "tenure.lease.margin": "2.758", "tenure.lease.votes": "2", "tenure.lease.refilled": "0",
			"tenure.outcome": "failed", "error.type": "timeout",
		}, attributesOf(s))
		require.Equal(t, 1, tel.total(t, "tenure.lease.extend.duration", "tenure.outcome", "failed", "error.type", "timeout"))
		require.Zero(t, tel.total(t, "tenure.lease.extend.margin"), "the margin is of those that succeeded")

		for _, n := range tel.spans("tenure.node.extend") {
			childOf(t, n, s.SpanContext())
			require.Equal(t, trace.SpanKindClient, n.SpanKind())
			require.Equal(t, "ok", attributesOf(n)["tenure.outcome"], "those that had answered")
			require.True(t, n.StartTime().Equal(start))
		}
		require.Len(t, tel.spans("tenure.node.extend"), 2)
	})
}

// An extension is slow if it left less than half of the TTL as margin, or took more than a tenth of
// it.
func TestSlowExtensionIsASpan(t *testing.T) {
	for _, test := range []struct {
		name  string
		wait  time.Duration // before it
		delay time.Duration // of the nodes
		slow  bool
	}{
		{"little margin", validity - ttl/2 + time.Millisecond, 0, true},
		{"enough margin", validity - ttl/2, 0, false},
		{"took long", time.Second, ttl/10 + time.Millisecond, true},
		{"did not take long", time.Second, ttl / 10, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
				tel := newTelemetry(t)
				q := open(t, fleet, redlock.WithTracer(tel), redlock.WithNodeTimeout(ttl/4))
				l := acquire(t, q, "orders", redlock.WithoutAutoExtend())
				settle()
				pass(test.wait)
				for _, n := range fleet.Nodes() {
					n.SetDelay(test.delay)
				}
				require.NoError(t, l.Extend(t.Context()))
				if !test.slow {
					require.Empty(t, tel.spans("tenure.lease.extend"))
					return
				}
				s := tel.span(t, "tenure.lease.extend")
				require.Equal(t, sdktrace.Status{}, s.Status())
				require.Equal(t, "extended", attributesOf(s)["tenure.outcome"])
				require.Equal(t, test.delay, s.EndTime().Sub(s.StartTime()))
				linkedTo(t, s, tel.span(t, "tenure.lease.acquire"))
				for _, n := range tel.spans("tenure.node.extend") {
					require.Equal(t, test.delay, n.EndTime().Sub(n.StartTime()))
				}
				require.GreaterOrEqual(t, len(tel.spans("tenure.node.extend")), 3, "those that had answered")
			})
		})
	}
}

func TestWithExtendSpansEveryExtensionIsASpan(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t, tenureotel.WithExtendSpans())
		acquire(t, open(t, fleet, redlock.WithTracer(tel)), "orders")
		pass(time.Minute)
		n := len(tel.spans("tenure.lease.extend"))
		require.Greater(t, n, 30)
		require.Equal(t, n, tel.total(t, "tenure.lease.extend.duration"))
		require.GreaterOrEqual(t, len(tel.spans("tenure.node.extend")), 3*n)
	})
}

// Leases are released at any time, also while an extension is on its way.
func TestReleaseDuringAnExtensionIsNoFailure(t *testing.T) {
	bubble(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := newTelemetry(t)
		q := open(t, fleet, redlock.WithTracer(tel))
		l := acquire(t, q, "orders", redlock.WithoutAutoExtend())
		pass(time.Second)
		for _, n := range fleet.Nodes() {
			n.SetDelay(100 * time.Millisecond)
		}
		done := make(chan error, 1)
		go func() { done <- l.Extend(t.Context()) }()
		pass(50 * time.Millisecond)
		require.NoError(t, l.Release(t.Context()))
		require.ErrorIs(t, <-done, redlock.ErrReleased)
		settle()
		require.Empty(t, tel.spans("tenure.lease.extend"))
		require.Zero(t, tel.total(t, "tenure.lease.extend.duration"))
	})
}
