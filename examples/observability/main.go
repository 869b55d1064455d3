// Observability runs three replicas of a service, each in a process of its own. They trace and
// measure their leases, elections and jobs with package tenureotel:
//
//	go run ./examples/observability
//
// The replicas serve their metrics for Prometheus on ports 9464, 9465 and 9466 of 127.0.0.1. If
// OTEL_EXPORTER_OTLP_ENDPOINT is set, they send traces and metrics there. Logs are JSON on standard
// error, with trace and span IDs. The program runs until Ctrl-C, or for -duration. It needs no
// server: five nodes run inside the first process, which starts itself again for each replica.
// There is a failure to look at:
//
//	-kill-leader-after 30s    kills the leader of the election "poller" with SIGKILL every 30 s, and starts it again
//
// With -replica NAME the program is that one replica and starts no other, as in a container. -nodes
// then names its servers.
//
// telemetry.go sets up OpenTelemetry. replica.go shows what a service looks like. This file starts
// replicas and kills them.
package main

import (
	"context"
	"errors"
	"flag"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
)

// restartPause is the time from a kill to the restart.
const restartPause = 3 * time.Second

var (
	ttl        = flag.Duration("ttl", 3*time.Second, "TTL of the leases")
	replica    = flag.String("replica", "", "be the replica `NAME` and start no other; needs -nodes")
	duration   = flag.Duration("duration", 0, "how long to run; 0 is until Ctrl-C")
	listen     = flag.String("listen", "127.0.0.1:9464,127.0.0.1:9465,127.0.0.1:9466", "`addresses` of the replicas' metrics; with -replica the first")
	killLeader = flag.Duration("kill-leader-after", 0, "how often to kill the leader of the election "+poller+"; 0 is never")
	nodes      = replicas.NodesFlag()
)

func main() {
	if replicas.IsReplica() {
		replicas.Main(serve)
	}
	flag.Parse()
	ctx, stop := replicas.Context()
	defer stop()
	if *duration > 0 {
		ctx, stop = context.WithTimeout(ctx, *duration)
		defer stop()
	}
	switch {
	case *replica == "":
		replicas.Exit(supervise(ctx))
	case len(nodes.URLs) == 0:
		replicas.Exit(errors.New("-replica needs -nodes: those that all replicas use"))
	}
	replicas.ExitAfter(ctx)
	address, _, _ := strings.Cut(*listen, ",")
	only := settings{Replica: *replica, Nodes: nodes.URLs, TTL: *ttl, Listen: address}
	replicas.Exit(serve(ctx, only, func(e any) { replicas.Say("%+v", e) }))
}

// supervise runs the replicas until ctx ends, and kills them as the flag says. It returns when all
// have ended.
func supervise(ctx context.Context) error {
	if err := nodes.Open(ctx); err != nil {
		return err
	}
	defer nodes.Close()
	var leader *replicas.Process // leader of the election "poller"; nil if there is none
	group := replicas.NewGroup(func(p *replicas.Process, e event) {
		replicas.Say("%s: %s %s", p, e.Kind, e.Detail)
		switch e.Kind {
		case elected:
			leader = p
		case ended:
			if leader == p {
				leader = nil
			}
		}
	})
	addresses := make(map[string]string)
	start := func(name string) {
		group.Start(name, settings{Replica: name, Nodes: nodes.URLs, TTL: *ttl, Listen: addresses[name]})
	}
	for i, address := range strings.Split(*listen, ",") {
		name := string(rune('a' + i))
		addresses[name] = address
		start(name)
	}
	next := time.Now().Add(*killLeader)
	for group.Pass(ctx, time.Second); ctx.Err() == nil && !group.Failed(); group.Pass(ctx, time.Second) {
		if victim := leader; *killLeader > 0 && victim != nil && time.Now().After(next) {
			replicas.Say("KILLS %s, which leads %q (SIGKILL)", victim, poller)
			group.Kill(victim)
			leader = nil
			group.Pass(ctx, restartPause)
			start(victim.Name)
			next = time.Now().Add(*killLeader)
		}
	}
	return group.Stop()
}
