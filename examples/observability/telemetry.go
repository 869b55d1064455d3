package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	tenureotel "github.com/tenure-dev/tenure/otel"
)

// telemetry is the SDK of OpenTelemetry with the exporters of this process.
type telemetry struct {
	tenure *tenureotel.Instrumentation
	ends   []func(context.Context) error
}

// startTelemetry sets up metrics for Prometheus. If the standard environment variables name an
// endpoint, it also exports traces and metrics by OTLP over HTTP. It sets nothing globally: a
// service that sets global providers can leave out the providers at tenureotel.New.
func startTelemetry(ctx context.Context, s settings) (t *telemetry, err error) {
	t = &telemetry{}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close(ctx))
		}
	}()
	// Prometheus gets the resource as target_info, and the replica as the label instance of the
	// target.
	res, err := resource.New(ctx, resource.WithFromEnv(), resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "tenure-observability"), attribute.String("service.instance.id", s.Replica)))
	if err != nil {
		return t, err
	}
	registry := prometheus.NewRegistry()
	pull, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return t, err
	}
	traces := []sdktrace.TracerProviderOption{sdktrace.WithResource(res)}
	metrics := []metric.Option{metric.WithResource(res), metric.WithReader(pull)}
	if exports("TRACES") {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			return t, err
		}
		traces = append(traces, sdktrace.WithBatcher(exporter))
	} else {
		traces = append(traces, sdktrace.WithSampler(sdktrace.NeverSample()))
	}
	if exports("METRICS") {
		exporter, err := otlpmetrichttp.New(ctx)
		if err != nil {
			return t, err
		}
		metrics = append(metrics, metric.WithReader(metric.NewPeriodicReader(exporter)))
	}
	tracers, meters := sdktrace.NewTracerProvider(traces...), metric.NewMeterProvider(metrics...)
	t.ends = append(t.ends, tracers.Shutdown, meters.Shutdown)
	t.tenure, err = tenureotel.New(tenureotel.WithTracerProvider(tracers), tenureotel.WithMeterProvider(meters),
		tenureotel.WithLeaseNames(leaseName))
	if err != nil {
		return t, err
	}
	t.ends = append(t.ends, func(context.Context) error { return t.tenure.Close() })
	return t, t.serve(s.Listen, promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true})) // for exemplars
}

// leaseName returns the name of a lease on metrics. There is no limit to the number of invoices, so
// all of them share one name.
func leaseName(key string) string {
	if strings.HasPrefix(key, invoicePrefix) {
		return "invoice"
	}
	return key
}

// exports reports whether the environment names an endpoint for a signal. The exporters read this
// and all other variables themselves.
func exports(signal string) bool {
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
}

// serve serves the metrics page for Prometheus.
func (t *telemetry) serve(address string, scrape http.Handler) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("cannot serve metrics; choose another -listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", scrape)
	server, served := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}, make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.ends = append(t.ends, func(ctx context.Context) error {
		err := server.Shutdown(ctx)
		if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
			err = errors.Join(err, failed)
		}
		return err
	})
	return nil
}

// close sends the telemetry that has not been sent. It also observes the gauges once more. So
// elections and leases have to end before: then the last value from this replica says that it does
// not lead.
func (t *telemetry) close(ctx context.Context) error {
	var errs []error
	for _, end := range t.ends {
		errs = append(errs, end(ctx))
	}
	return errors.Join(errs...)
}
