package tenureotel_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-co-op/gocron/v2"

	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

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
	three(t, func(t *testing.T, fleet *redlocktest.Fleet) {
		tel := exemplarsOf(t, tenureotel.WithExtendSpans())
		q := open(t, fleet, redlock.WithTracer(tel))
		ctx, caller := tel.tracer().Start(t.Context(), "caller")
		l, err := q.TryAcquire(ctx, "orders")
		require.NoError(t, err)
		pass(time.Second)
		require.NoError(t, l.Extend(t.Context()))
		require.NoError(t, l.Release(t.Context()))
		s := newScheduler(t, tel, q)
		_, err = s.NewJob(everyTen, gocron.NewTask(func() {}), gocron.WithName("report"))
		require.NoError(t, err)
		s.Start()
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
