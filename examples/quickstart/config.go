package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
	"github.com/tenure-dev/tenure/redlock"
)

// The modes: which replica runs a tick.
const (
	modeElector = "elector"
	modeLocker  = "locker"
)

// config is what the user asked for.
type config struct {
	mode     string
	nodes    []string // URLs; none means nodes inside the process
	duration time.Duration
	ttl      time.Duration
	replicas int
	web      string // where the page is; empty for none
}

const minReplicas = 2 // or no replica takes over

// shortest is the duration in which a take-over can be seen. The kill comes after a third of it, at
// the next tick. Then the TTL runs out, and the killed replica is started again.
func (c *config) shortest() time.Duration { return (c.ttl + 2*time.Second + restartPause) * 3 / 2 }

func parseFlags(args []string, nodesFromEnvironment string) (*config, error) {
	c := &config{}
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the caller prints the error
	flags.StringVar(&c.mode, "mode", modeElector, "which replica runs a tick: the leader (elector), or the one that gets its lease (locker)")
	replicas.NodesFlag(flags, &c.nodes, nodesFromEnvironment)
	flags.DurationVar(&c.duration, "duration", 20*time.Second, "how long to run")
	flags.DurationVar(&c.ttl, "ttl", 3*time.Second, "TTL of the leases; at least "+redlock.MinTTL.String())
	flags.IntVar(&c.replicas, "replicas", 3, fmt.Sprintf("replicas to start, %d to %d", minReplicas, replicas.Max))
	flags.StringVar(&c.web, "web", "", "`address` of a page on which you break things, such as 127.0.0.1:8080; on loopback unless it has a host")
	err := flags.Parse(args)
	if c.web != "" && !given(flags, "duration") {
		c.duration = 0 // until it is interrupted
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(os.Stderr)
		flags.PrintDefaults()
		return nil, err
	case err != nil:
		return nil, err
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q: everything is set by flags, see -help", flags.Arg(0))
	case c.mode != modeElector && c.mode != modeLocker:
		return nil, fmt.Errorf("-mode %q is unknown: use %s or %s", c.mode, modeElector, modeLocker)
	case c.ttl < redlock.MinTTL:
		return nil, fmt.Errorf("-ttl %v is below the minimum of %v", c.ttl, redlock.MinTTL)
	case c.replicas < minReplicas || c.replicas > replicas.Max:
		return nil, fmt.Errorf("-replicas %d is not between %d and %d", c.replicas, minReplicas, replicas.Max)
	case c.web == "" && c.duration < c.shortest():
		return nil, fmt.Errorf("-duration %v is too short to see a take-over with a TTL of %v: use at least %v", c.duration, c.ttl, c.shortest())
	}
	return c, nil
}

// given reports whether a flag was set.
func given(flags *flag.FlagSet, name string) (is bool) {
	flags.Visit(func(f *flag.Flag) { is = is || f.Name == name })
	return is
}
