package rival

import (
	"context"
	"errors"
	"fmt"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	tenureotel "github.com/tenure-dev/tenure/otel"
)

// Tenure with telemetry.
var (
	TenureMetrics = telemetry("Tenure, metrics", nil)
	TenureSampled = telemetry("Tenure, metrics, 1 % of spans", sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0.01)))
	TenureTraced  = telemetry("Tenure, metrics, all spans", sdktrace.AlwaysSample())
)

// Observed are Tenure with more and more telemetry, from none.
func Observed() []*Kind { return []*Kind{Tenure, TenureMetrics, TenureSampled, TenureTraced} }

func telemetry(name string, sampler sdktrace.Sampler) *Kind {
	return &Kind{Name: name, Module: Tenure.Module, Servers: AllServers, Waits: true, Key: tenureKey,
		Open: func(c Config) (Rival, error) { return openTelemetry(c, sampler) }}
}

// telemeter is Tenure with OpenTelemetry's SDK, which aggregates metrics, for nobody to ask, and
// has spans in batches for an exporter that drops them: what an exporter sends, and how, is not
// Tenure's.
type telemeter struct {
	tenure
	close func() error
}

// openTelemetry makes no spans without a sampler.
func openTelemetry(c Config, sampler sdktrace.Sampler) (_ Rival, err error) {
	ctx := context.Background()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	opts := []tenureotel.Option{tenureotel.WithMeterProvider(meters), tenureotel.WithTracerProvider(tracenoop.NewTracerProvider())}
	shutDown := func() error { return meters.Shutdown(ctx) }
	if sampler != nil {
		tracers := sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler), sdktrace.WithBatcher(dropper{}))
		opts = append(opts, tenureotel.WithTracerProvider(tracers))
		shutDown = func() error { return errors.Join(tracers.Shutdown(ctx), meters.Shutdown(ctx)) }
	}
	instrumentation, err := tenureotel.New(opts...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("rival: %w", err), shutDown())
	}
	closeAll := func() error { return errors.Join(instrumentation.Close(), shutDown()) }
	c.Tracer = instrumentation
	r, err := openTenure(c)
	if err != nil {
		return nil, errors.Join(err, closeAll())
	}
	return telemeter{r.(tenure), closeAll}, nil
}

func (t telemeter) Close() error { return errors.Join(t.Quorum.Close(), t.close()) }

// dropper is an exporter of spans.
type dropper struct{}

func (dropper) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (dropper) Shutdown(context.Context) error                             { return nil }
