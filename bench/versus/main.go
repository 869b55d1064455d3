// Versus runs Tenure, the floor beneath it and its peers on the same work, side by side:
//
//	go run ./versus
//	go run ./versus -row pair,contended -quick
//	go run ./versus -row distinct64 -rival floor-batching,floor-merging,tenure
//
// It starts five valkey-server processes of its own, without persistence and on free ports. Rounds
// are interleaved. It prints the medians, their spread and the ratios to the floor of the same
// round, beside the targets, and what other processes took of the machine meanwhile, where /proc
// tells. A full run takes about 30 minutes on two cores. Nothing else should run on the machine
// meanwhile.
//
// It exits with 0 whether targets are met or not, with 1 when an operation failed that must not,
// with 2 if it could not run, and with 130 if it was interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/tenure-dev/tenure/bench/internal/place"
	"github.com/tenure-dev/tenure/bench/internal/rival"
	"github.com/tenure-dev/tenure/internal/valkeytest"
)

// The exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitTrouble     = 2
	exitInterrupted = 130 // as a shell reports SIGINT
)

func main() {
	if os.Getenv(place.Variable) != "" {
		os.Exit(place.RunChild(roles()))
	}
	os.Exit(versusMain(os.Args[1:], os.Stdout))
}

type config struct {
	rows                       []*row
	only                       []*rival.Kind // all if it is empty
	size                       size
	markdown, json, cpuProfile string
	servers                    []valkeytest.Option // of tests
}

func parseFlags(args []string) (*config, error) {
	c := &config{size: fullSize()}
	flags := flag.NewFlagSet("versus", flag.ContinueOnError)
	names := flags.String("row", "", "the rows to run, with commas; all if empty")
	rivals := flags.String("rival", "", "the rivals that take part, with commas, such as tenure,floor-batching; all if empty. No target is judged then")
	quick := flags.Bool("quick", false, "small sizes, about five minutes: for looking, not for figures")
	hold := flags.Duration("hold", 0, "how long leases are held in the row held (default 30s)")
	flags.StringVar(&c.markdown, "markdown", "", "the file to write the report into, between its marks")
	flags.StringVar(&c.json, "json", "", "the file to write all values into")
	flags.StringVar(&c.cpuProfile, "cpuprofile", "", "the file to write a CPU profile of this process into")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if *quick {
		c.size = quickSize()
	}
	if *hold != 0 {
		c.size.full = c.size.full && *hold == c.size.hold
		c.size.hold = *hold
	}
	var err error
	if c.only, err = chosen(*rivals, "rival", everyKind(), flagName); err != nil {
		return nil, err
	}
	if c.rows, err = chosen(*names, "row", rows(), func(r *row) string { return r.name }); err != nil {
		return nil, err
	}
	if *names == "" {
		c.rows = rows()
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("versus: unexpected argument %q: everything is set by flags, see -help", flags.Arg(0))
	case c.size.hold < c.size.heldTTL/2:
		return nil, fmt.Errorf("versus: -hold %v is too short for an extension: use at least %v", c.size.hold, c.size.heldTTL/2)
	}
	return c, nil
}

func versusMain(args []string, out io.Writer) int {
	cfg, err := parseFlags(args)
	if errors.Is(err, flag.ErrHelp) {
		return exitDone
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitTrouble
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	return run(ctx, cfg, out)
}

// run runs the rows. A row that fails does not keep the others from running.
func run(ctx context.Context, cfg *config, out io.Writer) int {
	trouble := func(err error) int {
		if ctx.Err() != nil {
			return exitInterrupted
		}
		fmt.Fprintln(os.Stderr, err)
		return exitTrouble
	}
	s, err := setUp(ctx, cfg.size, os.Stderr, cfg.servers...)
	if err != nil {
		return trouble(err)
	}
	s.only = cfg.only
	defer func() {
		if err := s.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	version, err := s.servers.Version(ctx)
	if err != nil {
		return trouble(err)
	}
	if cfg.cpuProfile != "" {
		file, err := os.Create(cfg.cpuProfile)
		if err != nil {
			return trouble(fmt.Errorf("versus: %w", err))
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return trouble(fmt.Errorf("versus: %w", err))
		}
		defer pprof.StopCPUProfile()
	}
	r := &report{Machine: thisMachine(version, time.Now()), Size: cfg.size.name}
	failed := false
	for _, row := range cfg.rows {
		began := time.Now()
		b := newBoard(row)
		err := b.watch(func() error { return row.run(ctx, s, b) })
		if b.disturbed() {
			fmt.Fprintf(os.Stderr, "%s: WARNING: other processes took %.1f %% of the processors' time\n", row.name, 100**b.Foreign)
		}
		if err != nil {
			if ctx.Err() != nil {
				return exitInterrupted
			}
			fmt.Fprintf(os.Stderr, "versus: row %s FAILED: %v\n", row.name, err)
			failed = true
			continue
		}
		b.finish()
		r.Boards = append(r.Boards, b)
		fmt.Fprintf(os.Stderr, "%s: %s\n", row.name, time.Since(began).Round(time.Second/10))
	}
	if len(cfg.only) == 0 {
		r.Targets = judge(r.Boards, cfg.size.full)
	}
	fmt.Fprint(out, strings.TrimSpace(r.markdown()), "\n")
	if failed {
		return exitFailed // and no file is written over
	}
	if cfg.markdown != "" {
		if err := r.writeMarkdown(cfg.markdown); err != nil {
			return trouble(err)
		}
	}
	if cfg.json != "" {
		if err := r.writeJSON(cfg.json); err != nil {
			return trouble(err)
		}
	}
	return exitDone
}
