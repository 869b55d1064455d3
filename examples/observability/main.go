// Observability runs three replicas of a service, each in a process of its own. They trace and
// measure their leases, elections and jobs with package tenureotel:
//
//	go run ./examples/observability
//
// The replicas serve their metrics for Prometheus on ports 9464, 9465 and 9466 of 127.0.0.1. If
// OTEL_EXPORTER_OTLP_ENDPOINT is set, they send traces and metrics there. Logs are JSON on standard
// error, with trace and span IDs. The program runs until Ctrl-C, or for -duration. It needs no
// server: five nodes run inside the first process, which starts itself again for each replica.
// These flags cause failures to look at:
//
//	-kill-leader-after 30s    kills the leader of the election "poller" with SIGKILL every 30 s, and starts it again
//	-restart-node-after 45s   kills a node every 45 s, and starts it again without its data (nodes inside the process only)
//
// With -targets FILE the program writes the addresses of the replicas for Prometheus' service
// discovery by files: see prometheus/prometheus.yml. With -replica NAME the program is that one
// replica and starts no other, as in a container. -nodes then names its servers.
//
// telemetry.go sets up OpenTelemetry. replica.go shows what a service looks like. This file starts
// replicas and harms them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
)

// restartPause is the time from a kill to the restart.
const restartPause = 3 * time.Second

var (
	ttl         = flag.Duration("ttl", 3*time.Second, "TTL of the leases")
	replica     = flag.String("replica", "", "be the replica `NAME` and start no other; needs -nodes")
	duration    = flag.Duration("duration", 0, "how long to run; 0 is until Ctrl-C")
	listen      = flag.String("listen", "127.0.0.1", "`address` to serve metrics at; 0.0.0.0 in a container")
	metricsPort = flag.Int("metrics-port", 9464, "`port` of the first replica's metrics, which the others' follow; 0 is any")
	targets     = flag.String("targets", "", "`file` to write the replicas' addresses to, for Prometheus' file_sd_configs, when all listen")
	killLeader  = flag.Duration("kill-leader-after", 0, "how often to kill the leader of the election "+poller+"; 0 is never")
	restartNode = flag.Duration("restart-node-after", 0, "how often to restart a node inside the process without its data; 0 is never")
	nodes       = replicas.NodesFlag()
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
	case *restartNode > 0 && len(nodes.URLs) > 0:
		replicas.Exit(errors.New("-restart-node-after restarts nodes inside the process, and -nodes names others"))
	case *replica == "":
		replicas.Exit(supervise(ctx))
	case len(nodes.URLs) == 0:
		replicas.Exit(errors.New("-replica needs -nodes: those that all replicas use"))
	}
	replicas.ExitAfter(ctx)
	only := settings{Replica: *replica, Nodes: nodes.URLs, TTL: *ttl, Listen: address(0)}
	replicas.Exit(serve(ctx, only, func(e any) { replicas.Say("%+v", e) }))
}

// address returns the address at which a replica serves its metrics.
func address(number int) string {
	port := *metricsPort
	if port != 0 {
		port += number
	}
	return net.JoinHostPort(*listen, strconv.Itoa(port))
}

// supervise runs the replicas until ctx ends, and harms them as the flags say. It returns when all
// replicas have ended.
func supervise(ctx context.Context) error {
	if err := nodes.Open(ctx); err != nil {
		return err
	}
	defer nodes.Close()
	addresses := make(map[string]string)
	var leader *replicas.Process // leader of the election "poller"; nil if there is none
	group := replicas.NewGroup(func(p *replicas.Process, e event) {
		replicas.Say("%s: %s %s", p, e.Kind, e.Detail)
		switch e.Kind {
		case listens:
			addresses[p.Name] = e.Detail
		case elected:
			leader = p
		case ended:
			if leader == p {
				leader = nil
			}
		}
	})
	start := func(name, address string) {
		group.Start(name, settings{Replica: name, Nodes: nodes.URLs, TTL: *ttl, Listen: address})
	}
	for i, name := range []string{"a", "b", "c"} {
		start(name, address(i))
	}
	if group.Watch(ctx, func() bool { return len(addresses) == 3 }) && *targets != "" {
		if err := writeTargets(*targets, addresses); err != nil {
			group.Fail(err)
		}
	}
	node := 0
	nextKill, nextRestart := time.Now().Add(*killLeader), time.Now().Add(*restartNode)
	for group.Pass(ctx, time.Second); ctx.Err() == nil && !group.Failed(); group.Pass(ctx, time.Second) {
		if victim := leader; *killLeader > 0 && victim != nil && time.Now().After(nextKill) {
			replicas.Say("KILLS %s, which leads %q (SIGKILL)", victim, poller)
			group.Kill(victim)
			leader = nil
			group.Pass(ctx, restartPause)
			start(victim.Name, addresses[victim.Name])
			nextKill = time.Now().Add(*killLeader)
		}
		if *restartNode > 0 && time.Now().After(nextRestart) {
			n := nodes.Fleet.Node(node % len(nodes.URLs))
			replicas.Say("KILLS node %d, and starts it again without its data", node%len(nodes.URLs)+1)
			err := n.Kill()
			group.Pass(ctx, restartPause)
			if err = errors.Join(err, n.Restart(false)); err != nil {
				group.Fail(err)
			}
			node, nextRestart = node+1, time.Now().Add(*restartNode)
		}
	}
	return group.Stop()
}

// writeTargets writes the addresses of the replicas for Prometheus' service discovery by files. The
// label instance is the replica's name, which is service.instance.id and stays the same after a
// restart. By default Prometheus would use the address.
func writeTargets(path string, addresses map[string]string) error {
	var list []map[string]any
	for name, address := range addresses {
		list = append(list, map[string]any{"targets": []string{address}, "labels": map[string]string{"instance": name}})
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err == nil { // a rename, so that no reader sees a part of the file
		err = errors.Join(os.WriteFile(path+".new", append(text, '\n'), 0o644), os.Rename(path+".new", path))
	}
	if err != nil {
		return fmt.Errorf("-targets: %w", err)
	}
	return nil
}
