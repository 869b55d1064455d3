package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/client"
)

const (
	servers = 5
	prefix  = "chaos"

	minClients  = 8
	maxClients  = 100
	minKeys     = 2
	maxKeys     = 26
	minDuration = 5 * time.Second
)

// ttls are the keys' in turn: short, so that much happens.
var ttls = []time.Duration{time.Second, 1500 * time.Millisecond, 2 * time.Second}

// config is what the user asked for.
type config struct {
	duration time.Duration
	seed     uint64
	clients  int
	keys     int
	workers  int
	skew     time.Duration
	control  client.Control
	report   string // file; empty for none
	keep     string // directory for the journals; empty for a temporary one
	again    string // directory of journals to judge once more; empty to run
	planOnly bool
	verbose  bool
}

// flagError is an error that package flag has printed already.
type flagError struct{ error }

func (e *flagError) Unwrap() error { return e.error }

func parseFlags(args []string) (*config, error) {
	c := &config{}
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	flags.DurationVar(&c.duration, "duration", 5*time.Minute, "how long faults happen; starting and judging come on top")
	flags.Uint64Var(&c.seed, "seed", 0, "determines the schedule of faults; 0 draws one")
	flags.IntVar(&c.clients, "clients", minClients, "client processes")
	flags.IntVar(&c.keys, "keys", 4, "keys that the clients want")
	flags.IntVar(&c.workers, "workers", 3, "leases that each client holds or wants at a time")
	flags.DurationVar(&c.skew, "skew", 500*time.Millisecond, "what clients are told of the difference between clocks (WithClockSkew)")
	control := flags.String("control", "", "weaken the clients to see that it is found: "+string(client.NoGate)+" (WithoutRestartGate)")
	flags.StringVar(&c.report, "report", "", "write the report to this `file`, as JSON if its name ends in .json and as Markdown if not")
	flags.StringVar(&c.keep, "keep", "", "keep the journals in this new `directory`; they are kept anyway if there are violations")
	flags.StringVar(&c.again, "check", "", "start nothing, and judge the journals in this `directory` again")
	flags.BoolVar(&c.planOnly, "plan", false, "print the schedule of faults and exit")
	flags.BoolVar(&c.verbose, "v", false, "print each fault as it happens")
	if err := flags.Parse(args); err != nil {
		return nil, &flagError{err}
	}
	c.control = client.Control(*control)
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q: everything is set by flags, see -help", flags.Arg(0))
	case c.duration < minDuration:
		return nil, fmt.Errorf("-duration %v is too short for anything to happen: use at least %v", c.duration, minDuration)
	case c.clients < minClients || c.clients > maxClients:
		return nil, fmt.Errorf("-clients %d is not between %d and %d", c.clients, minClients, maxClients)
	case c.keys < minKeys || c.keys > maxKeys:
		return nil, fmt.Errorf("-keys %d is not between %d and %d", c.keys, minKeys, maxKeys)
	case c.workers < 1 || c.workers > 100:
		return nil, fmt.Errorf("-workers %d is not between 1 and 100", c.workers)
	case !slices.Contains([]client.Control{client.NoControl, client.NoGate}, c.control):
		return nil, fmt.Errorf("-control %q is unknown: use %s", c.control, client.NoGate)
	}
	if c.keep != "" {
		if _, err := os.Stat(c.keep); !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("-keep %s exists: name a directory that does not", c.keep)
		}
	}
	for c.seed == 0 {
		c.seed = rand.Uint64() >> 32 // short enough to be typed
	}
	return c, nil
}

// keyring is the keys with their TTLs.
func (c *config) keyring() []client.Key {
	keys := make([]client.Key, c.keys)
	for i := range keys {
		keys[i] = client.Key{Name: string(rune('a' + i)), TTL: ttls[i%len(ttls)]}
	}
	return keys
}

func maxTTL() time.Duration { return slices.Max(ttls) }

// recovery is for how long a restarted server does not vote, at most: the longest TTL or twice the skew, and the skew,
// by clocks that may be fast, rounded up twice; and a second until every client has noticed. It only spaces the
// faults; what the library does is seen. Without the gate a server votes at once, and the faults come closer.
func (c *config) recovery() time.Duration {
	if c.control == client.NoGate {
		return maxTTL()
	}
	return max(maxTTL(), 2*c.skew) + c.skew + 3*time.Second
}
