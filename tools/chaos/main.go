// Chaos puts the library under fire and looks for what must never happen: five real servers behind links that fail, at
// least eight client processes that fail as well, and a judge that reads what each of them saw:
//
//	go run ./tools/chaos -duration 5m
//
// It prints the seed of the faults, which determines all of them, and a report. It exits with 1 if a promise was
// broken, with 2 if it could not run, and with 130 if it was interrupted. docs/chaos.md tells what it does and how to
// read the report.
//
// Packages: schedule decides which faults happen, arena and crowd make them happen to servers, links and clients;
// client is what a client does and journal where it keeps that; witness is the resource that the leases protect;
// verdict judges, report tells and sheet lays that out. This package puts them together.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/client"
	"github.com/tenure-dev/tenure/tools/chaos/crowd"
	"github.com/tenure-dev/tenure/tools/chaos/report"
	"github.com/tenure-dev/tenure/tools/chaos/verdict"
)

// The exit codes.
const (
	exitPass        = 0
	exitViolation   = 1
	exitTrouble     = 2
	exitInterrupted = 130 // as a shell reports SIGINT
)

// overtime is how much longer than the faults everything may take before the program ends itself.
const overtime = 4 * time.Minute

func main() {
	if os.Getenv(crowd.Variable) != "" {
		os.Exit(client.Main(os.Stdin, os.Stdout))
	}
	os.Exit(chaosMain(os.Args[1:], os.Stdout))
}

func chaosMain(args []string, out io.Writer) int {
	cfg, err := parseFlags(args)
	if errors.Is(err, flag.ErrHelp) {
		return exitPass
	}
	if err != nil {
		if printed := new(flagError); !errors.As(err, &printed) {
			fmt.Fprintln(os.Stderr, "chaos:", err)
		}
		return exitTrouble
	}
	if cfg.again != "" {
		return judge(cfg, &archive{dir: cfg.again}, out)
	}
	plan := cfg.plan()
	fmt.Fprintf(out, "seed %d: %d faults; the same again: %s\n", cfg.seed, len(plan), cfg.command())
	for _, f := range plan {
		fmt.Fprintln(out, f)
	}
	if cfg.planOnly {
		return exitPass
	}
	// A second signal ends the process at once, and what it started with it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	hung := time.AfterFunc(cfg.duration+overtime, func() {
		fmt.Fprintln(os.Stderr, "chaos: not done long after the faults, so something hangs:")
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		os.Exit(exitTrouble)
	})
	defer hung.Stop()

	files, err := newArchive(cfg.keep)
	if err == nil {
		err = run(ctx, cfg, files, out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		if files != nil {
			fmt.Fprintln(os.Stderr, "chaos: journals:", files.dir)
		}
		return exitTrouble
	}
	code := judge(cfg, files, out)
	if code == exitPass && cfg.keep == "" {
		if err := files.remove(); err != nil {
			fmt.Fprintln(os.Stderr, "chaos:", err)
			return exitTrouble
		}
	} else {
		fmt.Fprintf(out, "journals: %s; judge them again with -check %s\n", files.dir, files.dir)
	}
	if ctx.Err() != nil && code == exitPass {
		return exitInterrupted
	}
	return code
}

// judge reads an archive, prints the report and returns the exit code.
func judge(cfg *config, files *archive, out io.Writer) int {
	history, acc, err := files.read()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return exitTrouble
	}
	r := report.New(verdict.Check(history), servers)
	r.Command, r.Seed, r.Duration, r.Halted, r.ReplacedLinks = acc.Command, acc.Seed, acc.Duration, acc.Halted, acc.Stuck
	r.Text(out)
	if err := writeReport(cfg.report, r); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return exitTrouble
	}
	if !r.Pass {
		return exitViolation
	}
	return exitPass
}

func writeReport(name string, r *report.Report) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("no report: %w", err)
	}
	if filepath.Ext(name) == ".json" {
		err = r.JSON(f)
	} else {
		r.Markdown(f)
	}
	return errors.Join(err, f.Close())
}
