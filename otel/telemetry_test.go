package tenureotel_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	tenureotel "github.com/tenure-dev/tenure/otel"
)

// telemetry is an Instrumentation whose spans and metrics a test reads.
type telemetry struct {
	*tenureotel.Instrumentation
	recorder *tracetest.SpanRecorder
	tracers  *sdktrace.TracerProvider
	reader   *sdkmetric.ManualReader
}

// newTelemetry samples as its parent says, and always without one.
func newTelemetry(tb testing.TB, opts ...tenureotel.Option) *telemetry {
	tb.Helper()
	tel := &telemetry{recorder: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	tel.tracers = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(tel.recorder))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(tel.reader))
	var err error
	tel.Instrumentation, err = tenureotel.New(append([]tenureotel.Option{
		tenureotel.WithTracerProvider(tel.tracers), tenureotel.WithMeterProvider(meters),
	}, opts...)...)
	require.NoError(tb, err)
	return tel
}

// tracer is the user's own.
func (tel *telemetry) tracer() trace.Tracer { return tel.tracers.Tracer("user") }

// spans returns the spans that have ended, of the names if there are any, in the order of their
// ends.
func (tel *telemetry) spans(names ...string) []sdktrace.ReadOnlySpan {
	var found []sdktrace.ReadOnlySpan
	for _, s := range tel.recorder.Ended() {
		if len(names) == 0 {
			found = append(found, s)
		}
		for _, name := range names {
			if s.Name() == name {
				found = append(found, s)
			}
		}
	}
	return found
}

// span returns the one span of that name.
func (tel *telemetry) span(tb testing.TB, name string) sdktrace.ReadOnlySpan {
	tb.Helper()
	found := tel.spans(name)
	require.Len(tb, found, 1, "spans %s", name)
	return found[0]
}

// forget drops the spans so far.
func (tel *telemetry) forget() { tel.recorder.Reset() }

// scope collects the metrics.
func (tel *telemetry) scope(tb testing.TB) metricdata.ScopeMetrics {
	tb.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(tb, tel.reader.Collect(tb.Context(), &data))
	require.LessOrEqual(tb, len(data.ScopeMetrics), 1)
	if len(data.ScopeMetrics) == 0 {
		return metricdata.ScopeMetrics{}
	}
	return data.ScopeMetrics[0]
}

// point is a data point of whatever kind.
type point struct {
	attributes attribute.Set
	value      float64 // the sum of a histogram
	count      uint64  // of histograms
	exemplars  []trace.SpanContext
}

// points returns the points of a metric.
func (tel *telemetry) points(tb testing.TB, name string) []point {
	tb.Helper()
	for _, m := range tel.scope(tb).Metrics {
		if m.Name == name {
			return pointsOf(tb, m)
		}
	}
	return nil
}

func pointsOf(tb testing.TB, m metricdata.Metrics) []point {
	tb.Helper()
	var points []point
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			found := point{attributes: p.Attributes, value: p.Sum, count: p.Count}
			for _, e := range p.Exemplars {
				found.exemplars = append(found.exemplars, trace.NewSpanContext(trace.SpanContextConfig{
					TraceID: trace.TraceID(e.TraceID), SpanID: trace.SpanID(e.SpanID)}))
			}
			points = append(points, found)
		}
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			points = append(points, point{attributes: p.Attributes, value: float64(p.Value)})
		}
	case metricdata.Gauge[int64]:
		for _, p := range data.DataPoints {
			points = append(points, point{attributes: p.Attributes, value: float64(p.Value)})
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			points = append(points, point{attributes: p.Attributes, value: p.Value})
		}
	default:
		tb.Fatalf("%s is a %T, which no metric of this package is", m.Name, m.Data)
	}
	return points
}

// find returns the one point that has these attributes, given as keys and values in turn, and
// whatever others.
func (tel *telemetry) find(tb testing.TB, name string, with ...string) point {
	tb.Helper()
	found := tel.matching(tb, name, with...)
	require.Len(tb, found, 1, "points of %s with %v", name, with)
	return found[0]
}

// value returns the value of that point.
func (tel *telemetry) value(tb testing.TB, name string, with ...string) float64 {
	tb.Helper()
	return tel.find(tb, name, with...).value
}

// total adds up the counts of the points of a histogram that have these attributes.
func (tel *telemetry) total(tb testing.TB, name string, with ...string) int {
	tb.Helper()
	n := 0
	for _, p := range tel.matching(tb, name, with...) {
		n += int(p.count)
	}
	return n
}

func (tel *telemetry) matching(tb testing.TB, name string, with ...string) []point {
	tb.Helper()
	var found []point
next:
	for _, p := range tel.points(tb, name) {
		for i := 0; i < len(with); i += 2 {
			if v, ok := p.attributes.Value(attribute.Key(with[i])); !ok || v.String() != with[i+1] {
				continue next
			}
		}
		found = append(found, p)
	}
	return found
}

// attributesOf returns a span's attributes as text.
func attributesOf(s sdktrace.ReadOnlySpan) map[string]string {
	m := make(map[string]string)
	for _, a := range s.Attributes() {
		m[string(a.Key)] = a.Value.String()
	}
	return m
}
