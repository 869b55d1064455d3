// Kubernetes is a replica of a service in a cluster. It answers probes, has the name of its pod,
// runs jobs while it leads, forwards requests to the leader, and stops within its grace period.
//
// deploy/kubernetes has the manifests, and docs/operations.md explains both. All settings are
// environment variables: see config.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/health"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// lameDuck is how long requests are still answered after the end has begun. In this time every load
// balancer learns that the pod is going.
const lameDuck = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	cfg, err := newConfig(os.Getenv)
	if err == nil {
		err = run(ctx, cfg, slog.New(slog.NewJSONHandler(os.Stdout, nil)))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the replica until ctx ends, and then ends it in order. First the replica is no longer
// ready, which load balancers notice while it stops. Then it gives up leadership and its runs end.
// Then its requests end, and at last its leases are released.
func run(ctx context.Context, cfg *config, log *slog.Logger) (err error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return err
	}
	meters := metric.NewMeterProvider(metric.WithReader(exporter))
	defer func() { err = errors.Join(err, meters.Shutdown(context.WithoutCancel(ctx))) }()
	telemetry, err := tenureotel.New(tenureotel.WithMeterProvider(meters))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, telemetry.Close()) }()

	listener, err := net.Listen("tcp", cfg.listen)
	if err != nil {
		return err
	}
	defer listener.Close() // Serve closes it too
	q, err := redlock.FromEnv(redlock.WithIdentity(cfg.pod), redlock.WithTracer(telemetry), redlock.WithLogger(log))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	jobs, err := scheduler.New(q, scheduler.WithElection("reports", elector.WithPayload(cfg.address(listener))),
		scheduler.WithLocation(time.UTC), scheduler.WithStopTimeout(cfg.stopTimeout),
		scheduler.WithTracer(telemetry.Scheduler()), scheduler.WithLogger(log))
	if err != nil {
		return err
	}
	_, err = jobs.NewJob(gocron.CronJob("* * * * *", false), gocron.NewTask(report, log), gocron.WithName("report"),
		scheduler.WithCatchUp(time.Hour, scheduler.CatchUpLatest))
	if err != nil {
		return err
	}

	probes := health.New(q, jobs)
	probes.Logger = log
	mux := http.NewServeMux()
	mux.Handle("/livez", probes)
	mux.Handle("/readyz", probes)
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/", &toLeader{elector: jobs.Elector(), own: reports(cfg.pod)})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	labelling, unlabel := context.WithCancel(context.WithoutCancel(ctx))
	defer unlabel()
	var label sync.WaitGroup
	if cfg.label != "" {
		label.Go(func() { keepLabel(labelling, cfg, jobs.Elector(), log) })
	}
	jobs.Start()
	log.Info("replica has begun", "address", cfg.address(listener))

	select {
	case <-ctx.Done():
	case err := <-served: // the server has failed
		unlabel()
		label.Wait()
		return errors.Join(err, jobs.Shutdown())
	}
	log.Info("replica ends")
	probes.Stop()
	gone := time.After(lameDuck)
	err = jobs.Shutdown()
	unlabel()
	label.Wait()
	<-gone
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), lameDuck)
	defer cancel()
	return errors.Join(err, server.Shutdown(limited))
}

// report is the job.
func report(ctx context.Context, log *slog.Logger) error {
	run, _ := scheduler.RunFromContext(ctx)
	log.InfoContext(ctx, "report", "tick", run.Due, "fencing_token", run.FencingToken())
	return ctx.Err()
}

// reports answers requests on the leader.
func reports(pod string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s answers %s\n", pod, r.URL.Path)
	})
}
