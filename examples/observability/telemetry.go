package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	tenureotel "github.com/tenure-dev/tenure/otel"
)

const serviceName = "tenure-observability"

// telemetry is OpenTelemetry's SDK with what this process exports to.
type telemetry struct {
	tenure   *tenureotel.Instrumentation
	scrape   http.Handler // Prometheus' page
	shutdown []func(context.Context) error
}

// startTelemetry sets up metrics for Prometheus, and traces and metrics by OTLP over HTTP where the
// standard environment variables say so. Nothing is set globally: a service that does so can leave
// out the providers at tenureotel.New.
func startTelemetry(ctx context.Context, replica string) (t *telemetry, err error) {
	t = &telemetry{}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close(ctx))
		}
	}()
	// Prometheus has the resource in target_info and, as instance, in the labels that it gives the
	// target.
	res, err := resource.New(ctx, resource.WithFromEnv(), resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", serviceName),
		attribute.String("service.instance.id", replica)))
	if err != nil {
		return t, fmt.Errorf("resource: %w", err)
	}
	tracers, err := t.traces(ctx, res)
	if err != nil {
		return t, fmt.Errorf("traces: %w", err)
	}
	meters, err := t.metrics(ctx, res)
	if err != nil {
		return t, fmt.Errorf("metrics: %w", err)
	}
	t.tenure, err = tenureotel.New(
		tenureotel.WithTracerProvider(tracers),
		tenureotel.WithMeterProvider(meters),
		tenureotel.WithLeaseNames(leaseName))
	return t, err
}

// leaseName is the name of a lease on metrics: invoices have numbers without end, and are one name.
func leaseName(key string) string {
	if strings.HasPrefix(key, invoicePrefix) {
		return "invoice"
	}
	return key
}

// traces returns a provider that sends spans by OTLP, or one that does nothing.
func (t *telemetry) traces(ctx context.Context, res *resource.Resource) (trace.TracerProvider, error) {
	if !exports("TRACES") {
		return noop.NewTracerProvider(), nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithBatcher(exporter))
	t.shutdown = append(t.shutdown, provider.Shutdown)
	return provider, nil
}

// metrics returns a provider that Prometheus reads, and that pushes by OTLP too if it shall.
func (t *telemetry) metrics(ctx context.Context, res *resource.Resource) (*metric.MeterProvider, error) {
	registry := prometheus.NewRegistry()
	pull, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return nil, err
	}
	t.scrape = promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}) // in which exemplars are
	options := []metric.Option{metric.WithResource(res), metric.WithReader(pull)}
	if exports("METRICS") {
		exporter, err := otlpmetrichttp.New(ctx)
		if err != nil {
			return nil, err
		}
		options = append(options, metric.WithReader(metric.NewPeriodicReader(exporter)))
	}
	provider := metric.NewMeterProvider(options...)
	t.shutdown = append(t.shutdown, provider.Shutdown)
	return provider, nil
}

// exports tells whether the environment names an endpoint for a signal. The exporters read it, and
// all else, themselves.
func exports(signal string) bool {
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
}

// close sends what has not been sent. The gauges are observed once more by that, so elections and
// leases have to be given up before: the last that is heard of this replica is then that it does
// not lead.
func (t *telemetry) close(ctx context.Context) error {
	var errs []error
	for _, shutdown := range t.shutdown {
		errs = append(errs, shutdown(ctx))
	}
	if t.tenure != nil {
		errs = append(errs, t.tenure.Close())
	}
	return errors.Join(errs...)
}
