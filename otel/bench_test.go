package tenureotel_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/tenure-dev/tenure/internal/valkeytest"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// Only ratios between the sub-benchmarks of one run mean anything. To compare them with benchstat:
//
//	for i in 1 2 3 4 5 6; do go test -run '^$' -bench . ./otel; done | benchstat -col /tracer -

// set-ups that are compared; the first is what a Quorum costs without.
var setups = []struct {
	name string
	opts []tenureotel.Option // nil for no tracer
}{
	{"tracer=none", nil},
	{"tracer=noop", []tenureotel.Option{
		tenureotel.WithTracerProvider(tracenoop.NewTracerProvider()), tenureotel.WithMeterProvider(metricnoop.NewMeterProvider())}},
	{"tracer=metrics", []tenureotel.Option{
		tenureotel.WithTracerProvider(tracenoop.NewTracerProvider()), tenureotel.WithMeterProvider(meters())}},
	{"tracer=traces", []tenureotel.Option{
		tenureotel.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(discard{}))), tenureotel.WithMeterProvider(meters())}},
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

// BenchmarkPair acquires and releases one key on five servers, over and over.
func BenchmarkPair(b *testing.B) {
	urls := valkeytest.Start(b, 5).URLs()
	for _, setup := range setups {
		b.Run(setup.name, func(b *testing.B) {
			opts := []redlock.Option{redlock.WithLogger(silent), redlock.WithoutRestartGate()}
			if setup.opts != nil {
				tel, err := tenureotel.New(setup.opts...)
				require.NoError(b, err)
				opts = append(opts, redlock.WithTracer(tel))
			}
			q, err := redlock.Open(urls, opts...)
			require.NoError(b, err)
			b.Cleanup(func() { require.NoError(b, q.Close()) })
			q.Nodes(b.Context())
			b.ReportAllocs()
			for b.Loop() {
				l, err := q.TryAcquire(b.Context(), "key")
				require.NoError(b, err)
				require.NoError(b, l.Release(b.Context()))
			}
		})
	}
}

// BenchmarkTracer is what a Quorum tells a tracer of an acquisition on five nodes and its release, without the Quorum.
func BenchmarkTracer(b *testing.B) {
	l := acquire(b, open(b, redlocktest.Start(b, 3)), "orders")
	for _, setup := range setups[1:] {
		b.Run(setup.name, func(b *testing.B) {
			tel, err := tenureotel.New(setup.opts...)
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				hearing(b.Context(), b.Context(), tel, l, fiveNodes)
			}
		})
	}
}
