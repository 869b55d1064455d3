package tenureotel_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// withoutTraces makes an Instrumentation that measures, or does nothing.
func withoutTraces(tb testing.TB, meters metric.MeterProvider) *tenureotel.Instrumentation {
	tb.Helper()
	tel, err := tenureotel.New(tenureotel.WithTracerProvider(tracenoop.NewTracerProvider()), tenureotel.WithMeterProvider(meters))
	require.NoError(tb, err)
	return tel
}

// hearing is what a Quorum of five nodes tells a tracer of an acquisition and its release, in the
// contexts of each.
func hearing(ctx, release context.Context, tel *tenureotel.Instrumentation, l *redlock.Lease, nodes []string) {
	operation := func(ctx context.Context, op redlock.Op) {
		for _, node := range nodes {
			ctx := tel.TraceNodeStart(ctx, redlock.TraceNodeStartData{Op: op, Key: "orders", Node: node})
			tel.TraceNodeEnd(ctx, redlock.TraceNodeEndData{Op: op, Key: "orders", Node: node, OK: true, Duration: time.Millisecond})
		}
	}
	acquiring := tel.TraceAcquireStart(ctx, redlock.TraceAcquireStartData{Key: "orders", TTL: l.TTL(), Nodes: 5, Quorum: 3})
	operation(acquiring, redlock.OpAcquire)
	tel.TraceAcquireEnd(acquiring, redlock.TraceAcquireEndData{Key: "orders", Duration: time.Millisecond, Attempts: 1, Votes: 3,
		Validity: validity, FencingToken: l.FencingToken(), Lease: l})
	releasing := tel.TraceReleaseStart(release, redlock.TraceReleaseStartData{Key: "orders", Lease: l})
	operation(releasing, redlock.OpRelease)
	tel.TraceReleaseEnd(releasing, redlock.TraceReleaseEndData{Key: "orders", Lease: l, Held: time.Second})
}

var fiveNodes = []string{"10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379", "10.0.0.4:6379", "10.0.0.5:6379"}

// With metrics only, and with providers that record nothing, what is told of an acquisition and its
// release costs no memory.
func TestMetricsAloneAllocateNothing(t *testing.T) {
	l := ended(t)
	release := releaseContext(t)
	ctx, cancel := context.WithCancel(trace.ContextWithSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}})))
	defer cancel()
	for _, test := range []struct {
		name         string
		ctx, release context.Context
		meters       metric.MeterProvider
	}{
		{"no-op providers", ctx, context.WithoutCancel(ctx), metricnoop.NewMeterProvider()},
		{"metrics of the SDK", context.Background(), context.Background(), meters()},
		{"metrics of the SDK, released as by a Quorum", ctx, release, meters()},
		{"metrics of the SDK in somebody's trace", ctx, ctx, meters()},
	} {
		t.Run(test.name, func(t *testing.T) {
			tel := withoutTraces(t, test.meters)
			require.Zero(t, allocations(func() { hearing(test.ctx, test.release, tel, l, fiveNodes) }))
		})
	}
}

// allocations is how often do allocates. The process has one count: on a busy machine a measurement
// lasts so long that others allocate as often meanwhile, but not in each.
func allocations(do func()) float64 {
	least := math.Inf(1)
	for tries := 20; least > 0 && tries > 0; tries-- {
		least = min(least, testing.AllocsPerRun(1000, do))
	}
	return least
}

// ended is a lease whose Quorum and servers have ended: what they allocate meanwhile would be
// counted too.
func ended(t *testing.T) (l *redlock.Lease) {
	t.Helper()
	require.True(t, t.Run("a lease", func(t *testing.T) { l = await(t, open(t, redlocktest.Start(t, 3))) }))
	return l
}

// await acquires a key however slowly the nodes answer: time passes for real here.
func await(t *testing.T, q *redlock.Quorum) *redlock.Lease {
	t.Helper()
	l, err := q.Acquire(t.Context(), "orders")
	require.NoError(t, err)
	return l
}

// spy keeps the context that a release is told of with.
type spy struct {
	*tenureotel.Instrumentation
	release context.Context
}

func (s *spy) TraceReleaseStart(ctx context.Context, _ redlock.TraceReleaseStartData) context.Context {
	s.release = ctx
	return ctx
}

// releaseContext is the context that a Quorum, which has ended as in [ended], makes for a release.
func releaseContext(t *testing.T) context.Context {
	t.Helper()
	s := &spy{Instrumentation: withoutTraces(t, metricnoop.NewMeterProvider())}
	require.True(t, t.Run("a release", func(t *testing.T) {
		_ = await(t, open(t, redlocktest.Start(t, 3), redlock.WithTracer(s))).Release(t.Context()) // who is too slow for it is told of it too
	}))
	return s.release
}

// Nor does an extension, however much is sampled: so a lease that is held costs nothing but the
// measurements.
func TestExtensionsAllocateNothing(t *testing.T) {
	l := ended(t)
	for name, traces := range map[string]trace.TracerProvider{
		"no spans": tracenoop.NewTracerProvider(), "not sampled": unsampled(), "all sampled": sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(discard{})),
	} {
		t.Run(name, func(t *testing.T) {
			tel, err := tenureotel.New(tenureotel.WithTracerProvider(traces), tenureotel.WithMeterProvider(meters()))
			require.NoError(t, err)
			require.Zero(t, allocations(func() {
				for _, node := range fiveNodes {
					ctx := tel.TraceNodeStart(context.Background(), redlock.TraceNodeStartData{Op: redlock.OpExtend, Node: node, Leases: 1})
					tel.TraceNodeEnd(ctx, redlock.TraceNodeEndData{Op: redlock.OpExtend, Node: node, OK: true, Duration: time.Millisecond})
				}
				tel.TraceExtend(l.Context(), redlock.TraceExtendData{Key: "orders", Lease: l, Start: time.Now(), Duration: time.Millisecond, Margin: validity})
			}))
		})
	}
}

// unsampled makes spans of which none is recorded.
func unsampled() *sdktrace.TracerProvider {
	return sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(discard{}), sdktrace.WithSampler(sdktrace.NeverSample()))
}

func meters() *sdkmetric.MeterProvider {
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
}

// discard records spans, as any processor has the SDK do, and drops them when they end.
type discard struct{}

func (discard) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (discard) OnEnd(sdktrace.ReadOnlySpan)                     {}
func (discard) Shutdown(context.Context) error                  { return nil }
func (discard) ForceFlush(context.Context) error                { return nil }
