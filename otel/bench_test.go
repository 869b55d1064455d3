package tenureotel_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Only ratios within one run mean anything. To compare the set-ups with benchstat:
//
//	for i in 1 2 3 4 5 6; do go test -run '^$' -bench . ./otel; done | benchstat -col /tracer -

type setup struct {
	name   string
	traces trace.TracerProvider
	meters metric.MeterProvider
}

// bare is a Quorum without a tracer, which is the floor of the others.
var bare = setup{name: "tracer=none"}

// set-ups that are compared.
var setups = []setup{
	{"tracer=noop", tracenoop.NewTracerProvider(), metricnoop.NewMeterProvider()},
	{"tracer=metrics", tracenoop.NewTracerProvider(), meters()},
	{"tracer=unsampled", unsampled(), meters()},
	{"tracer=traces", sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(discard{})), meters()},
}

// instrument makes an Instrumentation; nil of bare.
func (s setup) instrument(b *testing.B) *tenureotel.Instrumentation {
	b.Helper()
	if s == bare {
		return nil
	}
	var opts []tenureotel.Option
	if s.traces != nil {
		opts = append(opts, tenureotel.WithTracerProvider(s.traces), tenureotel.WithMeterProvider(s.meters))
	}
	tel, err := tenureotel.New(opts...)
	require.NoError(b, err)
	return tel
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

// BenchmarkPair acquires and releases one key on five servers, over and over. Its floor is
// tracer=none: the same Quorum on the same servers without a tracer. What the process spends on
// processors (cpu-us/op) differs less than the time where other work shares them.
func BenchmarkPair(b *testing.B) {
	urls := valkeytest.Start(b, 5).URLs()
	for _, s := range append([]setup{bare}, setups...) {
		b.Run(s.name, func(b *testing.B) {
			opts := []redlock.Option{redlock.WithLogger(silent), redlock.WithoutRestartGate()}
			if tel := s.instrument(b); tel != nil {
				opts = append(opts, redlock.WithTracer(tel))
			}
			q, err := redlock.Open(urls, opts...)
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, q.Close()) })
			q.Nodes(b.Context())
			b.ReportAllocs()
			before := used(b)
			for b.Loop() {
				l, err := q.TryAcquire(b.Context(), "key")
				if err == nil {
					err = l.Release(b.Context())
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((used(b)-before).Nanoseconds())/float64(b.N)/1000, "cpu-us/op")
		})
	}
}

// BenchmarkTracer is what a Quorum tells a tracer of an acquisition on five nodes and its release,
// without the Quorum.
func BenchmarkTracer(b *testing.B) {
	l := acquire(b, open(b, redlocktest.Start(b, 3)), "orders")
	for _, s := range setups {
		b.Run(s.name, func(b *testing.B) {
			tel := s.instrument(b)
			b.ReportAllocs()
			for b.Loop() {
				hearing(b.Context(), b.Context(), tel, l, fiveNodes)
			}
		})
	}
}

// BenchmarkExtension is what a Quorum tells a tracer of a lease that was extended in time: of one
// that is held, about three times in a TTL.
func BenchmarkExtension(b *testing.B) {
	l := acquire(b, open(b, redlocktest.Start(b, 3)), "orders")
	for _, s := range setups {
		b.Run(s.name, func(b *testing.B) {
			tel := s.instrument(b)
			b.ReportAllocs()
			for b.Loop() {
				tel.TraceExtend(l.Context(), redlock.TraceExtendData{Key: "orders", Lease: l, Start: time.Time{}, Duration: time.Millisecond, Margin: l.TTL()})
			}
		})
	}
}

// BenchmarkTracerFloor is what OpenTelemetry takes of BenchmarkTracer by itself: as many spans
// below each other, begun and ended, and as many measurements with a set of attributes that was
// made before. The spans have no attributes, nobody looks for what belongs to which lease or node,
// and where no span is recorded none is begun.
func BenchmarkTracerFloor(b *testing.B) {
	heard := newTelemetry(b)
	hearing(b.Context(), b.Context(), heard.Instrumentation, acquire(b, open(b, redlocktest.Start(b, 3)), "orders"), fiveNodes)
	for _, s := range setups {
		b.Run(s.name, func(b *testing.B) {
			api := newBareTelemetry(b, s.traces, s.meters)
			b.ReportAllocs()
			for b.Loop() {
				api.record(b.Context(), len(fiveNodes))
			}
		})
	}
	own := &telemetry{recorder: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	newBareTelemetry(b, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(own.recorder)),
		sdkmetric.NewMeterProvider(sdkmetric.WithReader(own.reader))).record(b.Context(), len(fiveNodes))
	require.Len(b, own.spans(), len(heard.spans()), "the floor has as many spans")
	require.Equal(b, observations(b, heard), observations(b, own), "and as many measurements")
}

// observations counts what the histograms were told.
func observations(b *testing.B, tel *telemetry) (n uint64) {
	for _, m := range tel.scope(b).Metrics {
		for _, p := range pointsOf(b, m) {
			n += p.count
		}
	}
	return n
}

// bareTelemetry is OpenTelemetry's API and nothing else.
type bareTelemetry struct {
	tracer   trace.Tracer // nil if it were a no-op one
	duration metric.Float64Histogram
	held     metric.Int64UpDownCounter
	set      []metric.RecordOption
	add      []metric.AddOption
}

func newBareTelemetry(b *testing.B, traces trace.TracerProvider, meters metric.MeterProvider) *bareTelemetry {
	b.Helper()
	set := metric.WithAttributeSet(attribute.NewSet(attribute.String("tenure.lease.name", "orders"), attribute.String("tenure.outcome", "acquired")))
	api := &bareTelemetry{set: []metric.RecordOption{set}, add: []metric.AddOption{set}}
	if _, none := traces.(tracenoop.TracerProvider); !none {
		api.tracer = traces.Tracer("floor")
	}
	var err error
	api.duration, err = meters.Meter("floor").Float64Histogram("floor.duration")
	require.NoError(b, err)
	api.held, err = meters.Meter("floor").Int64UpDownCounter("floor.held")
	require.NoError(b, err)
	return api
}

// record is an acquisition and a release, each on that many nodes.
func (t *bareTelemetry) record(ctx context.Context, nodes int) {
	for _, change := range []int64{1, -1} {
		t.measure(ctx, func(ctx context.Context) {
			t.held.Add(ctx, change, t.add...)
			for range nodes {
				t.measure(ctx, func(context.Context) {})
			}
		})
	}
}

// measure has a span around do, and records how long that took.
func (t *bareTelemetry) measure(ctx context.Context, do func(context.Context)) {
	if t.tracer != nil {
		var span trace.Span
		ctx, span = t.tracer.Start(ctx, "floor")
		defer span.End()
	}
	do(ctx)
	t.duration.Record(ctx, 0.001, t.set...)
}
