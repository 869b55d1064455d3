// Observability runs three replicas of a service, each an operating-system process, that trace and
// measure their leases, elections and jobs with package tenureotel:
//
//	go run ./examples/observability
//
// Each serves its metrics for Prometheus, on the ports 9464, 9465 and 9466 of 127.0.0.1, and sends
// traces and metrics to where OTEL_EXPORTER_OTLP_ENDPOINT points, if that is set. Logs are JSON on
// standard error, with trace and span ids. The program runs until Ctrl-C, or for -duration, and
// needs no server: five nodes run inside the first process, which then starts itself once more for
// each replica. What happens to a service can be seen with
//
//	-kill-leader-after 30s    kills the leader of the election "poller" with SIGKILL every 30 s, and starts it again
//	-restart-node-after 45s   kills a node every 45 s, and starts it again without its data (nodes inside the process only)
//
// Prometheus finds the replicas with -targets FILE and service discovery by files: see
// prometheus/prometheus.yml. With -replica NAME the program is that one replica and starts no
// other, as in a container; -nodes names its servers then.
//
// Files: telemetry.go sets up OpenTelemetry, replica.go is what a service looks like, with its
// jobs.go, leases.go and metrics.go; supervisor.go harms the replicas and the nodes and writes
// targets.go. Package replicas, which the examples share, starts and ends the processes.
package main

import (
	"context"
	"errors"
	"flag"
	"os"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
)

// The exit codes.
const (
	exitOK     = 0 // also after a signal: it is how the program is meant to end
	exitFailed = 1
	exitUsage  = 2 // the flags make no sense
)

func main() {
	if replicas.IsReplica() {
		os.Exit(replicas.Main(serve))
	}
	cfg, err := parseFlags(os.Args[1:], os.Getenv(replicas.NodesVariable))
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(exitOK)
	}
	if err != nil {
		replicas.Complain(err)
		os.Exit(exitUsage)
	}
	os.Exit(run(cfg))
}

// run is the process that the user started.
func run(cfg *config) int {
	ctx, stop := replicas.Context()
	defer stop()
	if cfg.duration > 0 {
		limited, cancel := context.WithTimeout(ctx, cfg.duration)
		defer cancel()
		ctx = limited
	}
	var err error
	if cfg.replica != "" { // be that one, and start no other
		replicas.ExitAfter(ctx)
		err = serve(ctx, settings{Replica: cfg.replica, Nodes: cfg.nodes, TTL: cfg.ttl, Listen: cfg.address(0)}, replicas.NewReporter(os.Stdout))
	} else {
		err = supervise(ctx, cfg)
	}
	if err != nil {
		replicas.Complain(err)
		return exitFailed
	}
	return exitOK
}
