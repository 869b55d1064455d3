// Soak runs scheduled jobs of all kinds on five replica processes for minutes, kills, freezes and rolls the replicas and restarts the
// servers meanwhile, and a judge reads what each replica did:
//
//	go run ./tools/soak -duration 10m
//
// It prints the seed of the faults, which determines all of them, and a report. It exits with 1 if a promise was broken, with 2 if it could
// not run, and with 130 if it was interrupted. docs/soak.md tells what it does and how to read the report.
//
// Packages: work is the jobs, plan decides which faults happen and storm makes them happen; cast has the replica processes, replica
// is what one does and story what it writes down; verdict judges and report tells. Servers, processes and journals are those of the chaos
// program.
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

	"github.com/tenure-dev/tenure/tools/soak/cast"
	"github.com/tenure-dev/tenure/tools/soak/plan"
	"github.com/tenure-dev/tenure/tools/soak/replica"
	"github.com/tenure-dev/tenure/tools/soak/report"
	"github.com/tenure-dev/tenure/tools/soak/verdict"
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
	if os.Getenv(cast.Variable) != "" {
		os.Exit(cast.Main(os.Stdin, os.Stdout, replica.Play))
	}
	os.Exit(soakMain(os.Args[1:], os.Stdout))
}

func soakMain(args []string, out io.Writer) int {
	cfg, err := parseFlags(args)
	if errors.Is(err, flag.ErrHelp) {
		return exitPass
	}
	if err != nil {
		if printed := new(flagError); !errors.As(err, &printed) {
			fmt.Fprintln(os.Stderr, "soak:", err)
		}
		return exitTrouble
	}
	if cfg.again != "" {
		return judge(cfg, &archive{dir: cfg.again}, out)
	}
	faults := plan.Plan(cfg.seed, cfg.topology, cfg.duration)
	fmt.Fprintf(out, "seed %d: %d faults; the same again: %s\n", cfg.seed, len(faults), cfg.command())
	if cfg.planOnly {
		for _, f := range faults {
			fmt.Fprintln(out, f)
		}
		return exitPass
	}
	// A second signal ends the process at once, and what it started with it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	hung := time.AfterFunc(cfg.duration+overtime, func() {
		fmt.Fprintln(os.Stderr, "soak: not done long after the faults, so something hangs:")
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		os.Exit(exitTrouble)
	})
	defer hung.Stop()

	files, err := newArchive(cfg.keep)
	if err == nil {
		err = run(ctx, cfg, files, out)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		if files != nil {
			fmt.Fprintln(os.Stderr, "soak: journals:", files.dir)
		}
		return exitTrouble
	}
	code := judge(cfg, files, out)
	if code == exitPass && cfg.keep == "" {
		if err := files.remove(); err != nil {
			fmt.Fprintln(os.Stderr, "soak:", err)
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
		fmt.Fprintln(os.Stderr, "soak:", err)
		return exitTrouble
	}
	r := report.New(verdict.Check(history), history.Servers)
	r.Command, r.Seed, r.Topology, r.Duration, r.Halted = acc.Command, acc.Seed, acc.Topology, acc.Duration, acc.Halted
	r.Text(out)
	if err := writeReport(cfg.report, r); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
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
