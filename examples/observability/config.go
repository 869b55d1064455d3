package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
	"github.com/tenure-dev/tenure/redlock"
)

// config is what the user asked for.
type config struct {
	replicas    int
	replica     string // be this one
	nodes       []string
	ttl         time.Duration
	duration    time.Duration // 0 is until a signal
	listen      string
	metricsPort int // of the first replica; 0 is any
	targets     string
	killLeader  time.Duration // 0 is never
	restartNode time.Duration // 0 is never
}

const (
	defaultPort  = 9464 // of Prometheus exporters in OpenTelemetry's specification
	minKill      = 5 * time.Second
	restartPause = 3 * time.Second // from a kill to the restart
)

func parseFlags(args []string, nodesFromEnvironment string) (*config, error) {
	c := &config{}
	flags := flag.NewFlagSet("observability", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints the error
	flags.IntVar(&c.replicas, "replicas", 3, fmt.Sprintf("replicas to start, 1 to %d", replicas.Max))
	flags.StringVar(&c.replica, "replica", "", "be the replica `NAME` and start no other; needs -nodes")
	replicas.NodesFlag(flags, &c.nodes, nodesFromEnvironment)
	flags.DurationVar(&c.ttl, "ttl", 3*time.Second, "TTL of the leases; at least "+redlock.MinTTL.String())
	flags.DurationVar(&c.duration, "duration", 0, "how long to run; 0 is until Ctrl-C")
	flags.StringVar(&c.listen, "listen", "127.0.0.1", "`address` to serve metrics at; 0.0.0.0 in a container")
	flags.IntVar(&c.metricsPort, "metrics-port", defaultPort, "`port` of the first replica's metrics, which the others' follow; 0 is any")
	flags.StringVar(&c.targets, "targets", "", "`file` to write the replicas' addresses to, for Prometheus' file_sd_configs, when all listen")
	flags.DurationVar(&c.killLeader, "kill-leader-after", 0, "how often to kill the leader of the election "+poller+"; 0 is never")
	flags.DurationVar(&c.restartNode, "restart-node-after", 0, "how often to restart a node inside the process without its data; 0 is never")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(os.Stderr)
			flags.PrintDefaults()
		}
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: everything is set by flags, see -help", flags.Arg(0))
	}
	return c, c.check()
}

// check returns what does not go together.
func (c *config) check() error {
	switch {
	case c.replicas < 1 || c.replicas > replicas.Max:
		return fmt.Errorf("-replicas %d is not between 1 and %d", c.replicas, replicas.Max)
	case c.ttl < redlock.MinTTL:
		return fmt.Errorf("-ttl %v is below the minimum of %v", c.ttl, redlock.MinTTL)
	case c.duration < 0:
		return fmt.Errorf("-duration %v is negative: use 0 to run until Ctrl-C", c.duration)
	case c.metricsPort < 0 || c.metricsPort+c.replicas-1 > 65535:
		return fmt.Errorf("-metrics-port %d leaves no valid port for %d replicas", c.metricsPort, c.replicas)
	case c.listen == "":
		return errors.New("-listen is empty: use 0.0.0.0 for all addresses")
	case c.killLeader != 0 && c.killLeader < minKill:
		return fmt.Errorf("-kill-leader-after %v is below the minimum of %v", c.killLeader, minKill)
	case c.restartNode != 0 && c.restartNode < c.minRestart():
		return fmt.Errorf("-restart-node-after %v is below %v, which keeps one node out at a time", c.restartNode, c.minRestart())
	case c.restartNode != 0 && len(c.nodes) > 0:
		return errors.New("-restart-node-after restarts nodes inside the process, and -nodes names others")
	case c.replica == "":
		return nil
	case len(c.nodes) == 0:
		return errors.New("-replica needs -nodes, or " + replicas.NodesVariable + ": the nodes that all replicas use")
	case c.targets != "" || c.killLeader != 0:
		return errors.New("-targets and -kill-leader-after are for the process that starts the replicas, and -replica starts none")
	}
	return nil
}

// minRestart is more than a node is down, and in quarantine afterwards, which is the TTL and a few
// seconds (at least 8 s: see docs/guarantees.md).
func (c *config) minRestart() time.Duration {
	return restartPause + max(8*time.Second, c.ttl*102/100+4*time.Second)
}

// address is where a replica serves its metrics.
func (c *config) address(number int) string {
	port := 0
	if c.metricsPort != 0 {
		port = c.metricsPort + number
	}
	return net.JoinHostPort(c.listen, strconv.Itoa(port))
}
