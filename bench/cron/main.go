// Cron gives the soak's jobs and faults to Tenure's Scheduler and to other ways of locking gocron's
// jobs, one after the other, and counts the ticks that were run twice and those that were lost:
//
//	go run ./cron -duration 60s
//
// Each way gets the same clocks, and the same faults at the same times, for that long. The table is
// all there is: it exits with 0 whatever the numbers are, with 2 if it could not run, and with 130
// if it was interrupted. docs/guarantees.md says more.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tenure-dev/tenure/tools/harness/clients"
)

// The exit codes.
const (
	exitDone        = 0
	exitTrouble     = 2
	exitInterrupted = 130 // as a shell reports SIGINT
)

// minDuration leaves some ticks of most jobs between warmUp and tail.
const minDuration = 10 * time.Second

func main() {
	if os.Getenv(clients.Variable) != "" {
		os.Exit(clients.Main(os.Stdin, os.Stdout, begin))
	}
	os.Exit(cronMain(os.Args[1:], os.Stdout))
}

type config struct {
	duration time.Duration
	seed     uint64
	verbose  bool
}

func parseFlags(args []string) (*config, error) {
	c := &config{}
	flags := flag.NewFlagSet("cron", flag.ContinueOnError)
	flags.DurationVar(&c.duration, "duration", time.Minute, "how long each way is tried")
	flags.Uint64Var(&c.seed, "seed", 0, "determines the faults and the clocks; 0 draws one")
	flags.BoolVar(&c.verbose, "v", false, "print each fault as it happens")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q: everything is set by flags, see -help", flags.Arg(0))
	case c.duration < minDuration:
		return nil, fmt.Errorf("-duration %v is too short: use at least %v", c.duration, minDuration)
	}
	for c.seed == 0 {
		c.seed = rand.Uint64() >> 32 // short enough to be typed
	}
	return c, nil
}

func cronMain(args []string, out io.Writer) int {
	cfg, err := parseFlags(args)
	if errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cron:", err)
		return exitTrouble
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	fmt.Fprintf(out, "the same again: go run ./cron -seed %d -duration %s\n", cfg.seed, cfg.duration)
	var tallies []*tally
	for _, w := range ways() {
		t, err := stage(ctx, cfg, w, out)
		if err != nil {
			fmt.Fprintf(os.Stderr, "cron: %s: %v\n", w.name, err)
			return exitTrouble
		}
		if ctx.Err() != nil {
			return exitInterrupted
		}
		tallies = append(tallies, t)
	}
	table(out, tallies)
	return exitDone
}
