package tenureotel_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/go-co-op/gocron/v2"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// exampleQuorum stands for redlock.Open with the URLs of real nodes. These have the time that they
// need on a busy machine.
func exampleQuorum(tel *tenureotel.Instrumentation) (q *redlock.Quorum, closeAll func()) {
	fleet, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	q, err = redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithTracer(tel),
		redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(15*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	return q, func() {
		q.Close()
		fleet.Close()
	}
}

// collected returns what a metric has measured.
func collected[T metricdata.Aggregation](reader sdkmetric.Reader, name string) (found T) {
	var data metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &data); err != nil {
		log.Fatal(err)
	}
	for _, m := range data.ScopeMetrics[0].Metrics {
		if m.Name == name {
			found = m.Data.(T)
		}
	}
	return found
}

// With exporters in the place of these, and providers that are set globally, New needs no options.
func ExampleNew() {
	spans := tracetest.NewInMemoryExporter()
	reader := sdkmetric.NewManualReader()
	tel, err := tenureotel.New(
		tenureotel.WithTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))),
		tenureotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
		tenureotel.WithoutNodeSpans(),
	)
	if err != nil {
		log.Fatal(err)
	}
	q, closeAll := exampleQuorum(tel) // redlock.Open(urls, redlock.WithTracer(tel))
	defer closeAll()
	lease, err := q.Acquire(context.Background(), "orders")
	if err != nil {
		log.Fatal(err)
	}
	lease.Release(context.Background())
	for _, span := range spans.GetSpans() {
		fmt.Println("span", span.Name)
	}
	fmt.Println("tenure.lease.held", collected[metricdata.Sum[int64]](reader, "tenure.lease.held").DataPoints[0].Value)
	// Output:
	// span tenure.lease.acquire
	// span tenure.lease.release
	// tenure.lease.held 0
}

func ExampleNewLogHandler() {
	lines := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey:
			return slog.Attr{}
		case "trace_id", "span_id":
			return slog.String(a.Key, "…") // they are random
		}
		return a
	}})
	logger := slog.New(tenureotel.NewLogHandler(lines))
	ctx, span := sdktrace.NewTracerProvider().Tracer("example").Start(context.Background(), "work")
	defer span.End()
	logger.InfoContext(ctx, "the report is done", "pages", 3)
	logger.Info("no span here")
	// Output:
	// level=INFO msg="the report is done" pages=3 trace_id=… span_id=…
	// level=INFO msg="no span here"
}

// A gocron scheduler of your own, with a Locker. For a scheduler.Scheduler see
// Instrumentation.Scheduler.
func ExampleInstrumentation_SchedulerOptions() {
	reader := sdkmetric.NewManualReader()
	tel, err := tenureotel.New(tenureotel.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	if err != nil {
		log.Fatal(err)
	}
	q, closeAll := exampleQuorum(tel) // redlock.Open(urls, redlock.WithTracer(tel))
	defer closeAll()
	locker, err := scheduler.NewLocker(q)
	if err != nil {
		log.Fatal(err)
	}
	s, err := gocron.NewScheduler(append(tel.SchedulerOptions(), gocron.WithDistributedLocker(locker))...)
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan struct{})
	_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
		gocron.NewTask(func() { close(done) }), gocron.WithName("report"))
	if err != nil {
		log.Fatal(err)
	}
	s.Start()
	<-done
	if err := s.Shutdown(); err != nil { // waits for what is measured after the task
		log.Fatal(err)
	}
	fmt.Println("tenure.job.duration", collected[metricdata.Histogram[float64]](reader, "tenure.job.duration").DataPoints[0].Count)
	// Output: tenure.job.duration 1
}
