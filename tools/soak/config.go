package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/tools/soak/plan"
)

const (
	minDuration = 5 * time.Second
	maxDuration = 24 * time.Hour // the jobs' journals are read into memory
)

// config is what the user asked for.
type config struct {
	duration time.Duration
	seed     uint64
	topology plan.Topology
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
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	flags.DurationVar(&c.duration, "duration", 10*time.Minute, "how long faults happen; starting, catching up and judging come on top")
	flags.Uint64Var(&c.seed, "seed", 0, "determines the schedule of faults and the clocks; 0 draws one")
	topology := flags.String("topology", plan.Topologies()[0].Name, "servers, distances and faults: "+strings.Join(plan.Names(), ", "))
	flags.StringVar(&c.report, "report", "", "write the report to this `file`, as JSON if its name ends in .json and as Markdown if not")
	flags.StringVar(&c.keep, "keep", "", "keep the journals in this new `directory`; they are kept anyway if there are violations")
	flags.StringVar(&c.again, "check", "", "start nothing, and judge the journals in this `directory` again")
	flags.BoolVar(&c.planOnly, "plan", false, "print the schedule of faults and exit")
	flags.BoolVar(&c.verbose, "v", false, "print each fault as it happens")
	if err := flags.Parse(args); err != nil {
		return nil, &flagError{err}
	}
	var err error
	if c.topology, err = plan.Find(*topology); err != nil {
		return nil, fmt.Errorf("-topology: %w", err)
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q: everything is set by flags, see -help", flags.Arg(0))
	case c.duration < minDuration || c.duration > maxDuration:
		return nil, fmt.Errorf("-duration %v is not between %v and %v", c.duration, minDuration, maxDuration)
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

// command is the command line that repeats the run.
func (c *config) command() string {
	return fmt.Sprintf("go run ./tools/soak -topology %s -seed %d -duration %s", c.topology.Name, c.seed, c.duration)
}
