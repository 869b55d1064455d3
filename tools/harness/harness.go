// Package harness is the frame of a program that runs real servers and client processes under
// faults and then checks what they wrote down: flags, interrupts, the archive of a run, its report,
// and the exit status.
//
// Below it, cluster has the servers and the links to them, clients the processes, nemesis makes the
// faults of a plan happen, in the words of package fault, history is where everything is written
// down, and report lays out what a checker found. The clients' work, the plans and the checkers are
// the programs' own.
package harness

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/tenure-dev/tenure/tools/harness/report"
)

// The exit codes.
const (
	ExitPass        = 0
	ExitViolation   = 1
	ExitTrouble     = 2
	ExitInterrupted = 130 // as a shell reports SIGINT
)

const (
	// overtime is how much longer than the faults everything may take before the program ends
	// itself.
	overtime    = 4 * time.Minute
	minDuration = 5 * time.Second
)

// Program is what a program adds.
type Program interface {
	// Flags defines its own flags.
	Flags(flags *flag.FlagSet)
	// Check tells what is wrong with the flags.
	Check() error
	// Command is the command line that repeats the schedule of faults.
	Command() string
	// Plan is the schedule of faults.
	Plan() []fmt.Stringer
	// Run starts everything, lets the faults happen, which it prints to faults, ends everything,
	// and leaves what is known in the archive. An error is trouble with the set-up, not a
	// violation. It ends soon after ctx.
	Run(ctx context.Context, files *Archive, out, faults io.Writer) error
	// Judge checks what is in an archive.
	Judge(files *Archive) (Report, error)
}

// Report is what a checker found, as it is written for machines.
type Report interface{ Sheet() *report.Sheet }

// Options are the flags that all programs have. Name, Duration and PrintPlan are set before.
type Options struct {
	Name      string
	Duration  time.Duration
	Seed      uint64
	PrintPlan bool // before each run

	report   string // file; empty for none
	keep     string // directory for the journals; empty for a temporary one
	again    string // directory of journals to judge once more; empty to run
	planOnly bool
	verbose  bool
}

// Lines are the faults of a plan as they are printed.
func Lines[F fmt.Stringer](faults []F) []fmt.Stringer {
	lines := make([]fmt.Stringer, len(faults))
	for i, f := range faults {
		lines[i] = f
	}
	return lines
}

// Account begins the account of a run.
func (o *Options) Account(command string) Account {
	return Account{Run: report.Run{Command: command, Seed: o.Seed, Duration: o.Duration.String()}}
}

// flagError is an error that package flag has printed already.
type flagError struct{ error }

func (e *flagError) Unwrap() error { return e.error }

// Parse reads the flags of a program.
func (o *Options) Parse(p Program, args []string) error {
	flags := flag.NewFlagSet(o.Name, flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	flags.DurationVar(&o.Duration, "duration", o.Duration, "how long faults happen; starting, ending and judging come on top")
	flags.Uint64Var(&o.Seed, "seed", 0, "determines the schedule of faults, and the clocks; 0 draws one")
	flags.StringVar(&o.report, "report", "", "write the report to this `file`, as JSON if its name ends in .json and as Markdown if not")
	flags.StringVar(&o.keep, "keep", "", "keep the journals in this new `directory`; they are kept anyway if there are violations")
	flags.StringVar(&o.again, "check", "", "start nothing, and judge the journals in this `directory` again")
	flags.BoolVar(&o.planOnly, "plan", false, "print the schedule of faults and exit")
	flags.BoolVar(&o.verbose, "v", false, "print each fault as it happens")
	p.Flags(flags)
	if err := flags.Parse(args); err != nil {
		return &flagError{err}
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: everything is set by flags, see -help", flags.Arg(0))
	case o.Duration < minDuration:
		return fmt.Errorf("-duration %v is too short for anything to happen: use at least %v", o.Duration, minDuration)
	}
	if err := p.Check(); err != nil {
		return err
	}
	if o.keep != "" {
		if _, err := os.Stat(o.keep); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("-keep %s exists: name a directory that does not", o.keep)
		}
	}
	for o.Seed == 0 {
		o.Seed = rand.Uint64() >> 32 // short enough to be typed
	}
	return nil
}

// complain prints an error.
func (o *Options) complain(err error) int {
	fmt.Fprintf(os.Stderr, "%s: %v\n", o.Name, err)
	return ExitTrouble
}

// Main is the program, and returns its exit code.
func Main(o *Options, p Program, args []string, out io.Writer) int {
	if err := o.Parse(p, args); errors.Is(err, flag.ErrHelp) {
		return ExitPass
	} else if errors.As(err, new(*flagError)) {
		return ExitTrouble
	} else if err != nil {
		return o.complain(err)
	}
	if o.again != "" {
		return o.judge(p, &Archive{dir: o.again}, out)
	}
	plan := p.Plan()
	fmt.Fprintf(out, "seed %d: %d faults; the same again: %s\n", o.Seed, len(plan), p.Command())
	if o.planOnly || o.PrintPlan {
		for _, f := range plan {
			fmt.Fprintln(out, f)
		}
	}
	if o.planOnly {
		return ExitPass
	}
	// A second signal ends the process at once, and what it started with it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	hung := time.AfterFunc(o.Duration+overtime, func() {
		fmt.Fprintf(os.Stderr, "%s: not done long after the faults, so something hangs:\n", o.Name)
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		os.Exit(ExitTrouble)
	})
	defer hung.Stop()

	files, err := newArchive(o.Name, o.keep)
	if err != nil {
		return o.complain(err)
	}
	faults := io.Discard
	if o.verbose {
		faults = out
	}
	if err := p.Run(ctx, files, out, faults); err != nil {
		_ = o.complain(err)
		return o.complain(fmt.Errorf("journals: %s", files.dir))
	}
	code := o.judge(p, files, out)
	if code == ExitPass && o.keep == "" {
		if err := files.remove(); err != nil {
			return o.complain(err)
		}
	} else {
		fmt.Fprintf(out, "journals: %s; judge them again with -check %s\n", files.dir, files.dir)
	}
	if ctx.Err() != nil && code == ExitPass {
		return ExitInterrupted
	}
	return code
}

// judge has an archive checked, prints the report and returns the exit code.
func (o *Options) judge(p Program, files *Archive, out io.Writer) int {
	r, err := p.Judge(files)
	if err != nil {
		return o.complain(err)
	}
	sheet := r.Sheet()
	sheet.Text(out)
	if err := o.write(r, sheet); err != nil {
		return o.complain(err)
	}
	if len(sheet.Violations) > 0 {
		return ExitViolation
	}
	return ExitPass
}

// write writes the report to a file if one is asked for.
func (o *Options) write(r Report, sheet *report.Sheet) error {
	if o.report == "" {
		return nil
	}
	f, err := os.Create(o.report)
	if err != nil {
		return fmt.Errorf("no report: %w", err)
	}
	if filepath.Ext(o.report) == ".json" {
		e := json.NewEncoder(f)
		e.SetIndent("", "  ")
		err = e.Encode(r)
	} else {
		sheet.Markdown(f)
	}
	return errors.Join(err, f.Close())
}
