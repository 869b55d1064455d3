package tenureotel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/tenure-dev/tenure/internal/register"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func TestFailedExtensionIsASpanMadeAfterwards(t *testing.T) {
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
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
			bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
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
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
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
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
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

func TestReleaseIsTheCallersAndLinkedToTheAcquisition(t *testing.T) {
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
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

// What is done with the lease's own context is no part of the acquisition that the context comes
// from, whose trace would grow for as long as the lease is held.
func TestWorkUnderALeaseIsNoPartOfItsAcquisition(t *testing.T) {
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
		ctx, caller := tel.tracer().Start(t.Context(), "caller")
		l, err := q.TryAcquire(ctx, "orders")
		require.NoError(t, err)
		q.Nodes(l.Context())
		turn, _, err := register.Of(q, "orders", time.Hour).Begin(l.Context(), l)
		require.NoError(t, err)
		require.NoError(t, turn.Write(l.Context(), nil))
		require.Empty(t, tel.spans("tenure.node.observe", "tenure.node.read", "tenure.node.write"))
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
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
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
	bubble(t, 5, func(t *testing.T, fleet *redlocktest.Fleet) {
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
	traced(t, 5, func(t *testing.T, fleet *redlocktest.Fleet, tel *telemetry, q *redlock.Quorum) {
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

// exemplarsOf returns telemetry with the exemplars that an SDK takes unless told otherwise.
func exemplarsOf(t *testing.T, opts ...tenureotel.Option) *telemetry {
	t.Helper()
	reader := metric.NewManualReader()
	tel := newTelemetry(t, append(opts, tenureotel.WithMeterProvider(
		metric.NewMeterProvider(metric.WithReader(reader), metric.WithExemplarFilter(exemplar.TraceBasedFilter))))...)
	tel.reader = reader
	return tel
}

// From a histogram one gets to the trace of what was slow: each measurement is made with the span
// of what it measures.
func TestExemplarsAreOfTheSpanThatIsMeasured(t *testing.T) {
	bubble(t, 3, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := exemplarsOf(t, tenureotel.WithExtendSpans())
		q := open(t, fleet, redlock.WithTracer(tel))
		ctx, caller := tel.tracer().Start(t.Context(), "caller")
		l, err := q.TryAcquire(ctx, "orders")
		require.NoError(t, err)
		pass(time.Second)
		require.NoError(t, l.Extend(t.Context()))
		require.NoError(t, l.Release(t.Context()))
		report(t, newScheduler(t, tel, q), func() {})
		pass(10 * time.Second)

		of := func(name string, with ...string) trace.SpanContext {
			t.Helper()
			found := tel.find(t, name, with...).exemplars
			require.NotEmpty(t, found, "%s has no exemplar", name)
			return found[0]
		}
		same := func(want trace.SpanContext, got trace.SpanContext) {
			t.Helper()
			require.Equal(t, want.TraceID(), got.TraceID())
			require.Equal(t, want.SpanID(), got.SpanID())
		}
		acquired := ofLease(t, tel, "orders").SpanContext()
		same(acquired, of("tenure.lease.acquire.duration", "tenure.lease.name", "orders"))
		require.Equal(t, caller.SpanContext().TraceID(), acquired.TraceID())
		same(tel.span(t, "tenure.lease.extend").SpanContext(), of("tenure.lease.extend.duration"))
		same(tel.span(t, "tenure.lease.extend").SpanContext(), of("tenure.lease.extend.margin"))
		same(tel.spans("tenure.lease.release")[0].SpanContext(), of("tenure.lease.hold.duration", "tenure.lease.name", "orders"))
		same(tel.span(t, "tenure.job.run").SpanContext(), of("tenure.job.duration"))
		same(tel.span(t, "tenure.job.run").SpanContext(), of("tenure.job.lateness"))
		node := of("tenure.node.operation.duration", "tenure.operation", "acquire", "server.address", "node-1.pipe")
		found := false
		for _, s := range tel.spans("tenure.node.acquire") {
			found = found || s.SpanContext().SpanID() == node.SpanID() && attributesOf(s)["server.address"] == "node-1.pipe"
		}
		require.True(t, found, "the node's exemplar is of one of its spans")
	})
}
