package main

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/redlock"
)

// nodesVariable names the servers to use instead of nodes inside the process.
const nodesVariable = "TENURE_NODES"

// mode is how gocron is wired.
type mode string

const (
	modeElector mode = "elector"
	modeLocker  mode = "locker"
)

// config is what the user asked for.
type config struct {
	mode     mode
	nodes    []string // URLs; none means nodes inside the process
	duration time.Duration
	ttl      time.Duration
	replicas int
}

const (
	minReplicas = 2  // or nobody takes over
	maxReplicas = 26 // they are called a to z
)

// shortest is the duration in which the story can be told: the kill comes after a third of it, at the next tick; then
// the TTL runs out, the next tick is due and the killed replica is restarted.
func (c *config) shortest() time.Duration { return (c.ttl + 2*time.Second + restartPause) * 3 / 2 }

// flagError is an error that package flag has printed already.
type flagError struct{ error }

func (e *flagError) Unwrap() error { return e.error }

func parseFlags(args []string, nodesFromEnvironment string) (*config, error) {
	c := &config{}
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	name := flags.String("mode", string(modeElector), "how gocron is wired: elector or locker")
	nodes := flags.String("nodes", nodesFromEnvironment, "`URLs` of real servers, separated by commas; default: nodes inside the process (environment: "+nodesVariable+")")
	// The default would be printed with the usage, and with it the passwords.
	flags.Lookup("nodes").DefValue = ""
	flags.DurationVar(&c.duration, "duration", 20*time.Second, "how long to run")
	flags.DurationVar(&c.ttl, "ttl", 3*time.Second, "TTL of the leases; at least "+redlock.MinTTL.String())
	flags.IntVar(&c.replicas, "replicas", 3, fmt.Sprintf("replicas to start, %d to %d", minReplicas, maxReplicas))
	if err := flags.Parse(args); err != nil {
		return nil, &flagError{err}
	}
	c.mode = mode(*name)
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q: everything is set by flags, see -help", flags.Arg(0))
	case c.mode != modeElector && c.mode != modeLocker:
		return nil, fmt.Errorf("-mode %q is unknown: use %s or %s", c.mode, modeElector, modeLocker)
	case c.ttl < redlock.MinTTL:
		return nil, fmt.Errorf("-ttl %v is below the minimum of %v", c.ttl, redlock.MinTTL)
	case c.replicas < minReplicas || c.replicas > maxReplicas:
		return nil, fmt.Errorf("-replicas %d is not between %d and %d", c.replicas, minReplicas, maxReplicas)
	case c.duration < c.shortest():
		return nil, fmt.Errorf("-duration %v is too short to see a take-over with a TTL of %v: use at least %v", c.duration, c.ttl, c.shortest())
	}
	for node := range strings.SplitSeq(*nodes, ",") {
		if node = strings.TrimSpace(node); node != "" {
			c.nodes = append(c.nodes, node)
		}
	}
	return c, nil
}

// hosts names nodes without what their URLs may contain besides.
func hosts(nodes []string) string {
	names := make([]string, len(nodes))
	for i, node := range nodes {
		names[i] = fmt.Sprintf("node %d", i+1)
		if u, err := url.Parse(node); err == nil && u.Host != "" {
			names[i] = u.Host
		}
	}
	return strings.Join(names, ", ")
}
