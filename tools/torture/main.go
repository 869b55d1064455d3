// Torture puts the library under fire and looks for what must never happen: real servers behind
// links that fail, client processes that fail as well, and a checker that reads what each of them
// saw. Clients take leases, or they are replicas with scheduled jobs, in one of four topologies:
//
//	go run ./tools/torture -workload leases -duration 5m
//	go run ./tools/torture -workload three -duration 5m
//
// It prints the seed of the faults, which determines all of them, and a report. It exits with 1 if
// a promise was broken, with 2 if it could not run, and with 130 if it was interrupted.
// docs/testing.md says what it does.
//
// Below it, plan decides which faults happen and nemesis makes them happen, to the servers and
// links of cluster and to the processes of clients. Packages leases and jobs are what the clients
// do, history is where everything is written down, and checker judges that.
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
	"runtime/pprof"
	"strings"
	"syscall"
	"time"

	"github.com/tenure-dev/tenure/tools/torture/checker"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/jobs"
	"github.com/tenure-dev/tenure/tools/torture/leases"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// The exit codes.
const (
	exitPass        = 0
	exitViolation   = 1
	exitTrouble     = 2
	exitInterrupted = 130 // as a shell reports SIGINT
)

const (
	// overtime is how much longer than twice the time of the faults everything may take before the
	// program ends itself.
	overtime    = 4 * time.Minute
	minDuration = 5 * time.Second
	maxDuration = 24 * time.Hour // because the journals are read into memory
)

func main() {
	if os.Getenv(clients.Variable) != "" {
		os.Exit(clients.Main(begin))
	}
	os.Exit(torture(os.Args[1:], os.Stdout))
}

// begin begins a client process: its name tells its workload.
func begin(p *clients.Process) (end func() error, err error) {
	if strings.HasPrefix(p.Name, "r") {
		return jobs.Begin(p)
	}
	return leases.Begin(p)
}

// options are the flags.
type options struct {
	workload plan.Topology
	duration time.Duration
	seed     uint64
	keep     string // directory for the journals; empty for a temporary one
	again    string // directory of journals to judge once more; empty to run
	verbose  bool
}

// parse reads the flags.
func parse(args []string) (o *options, err error) {
	o = &options{}
	var workload string
	flags := flag.NewFlagSet("torture", flag.ContinueOnError)
	flags.StringVar(&workload, "workload", "leases", "what clients do, and with what servers and faults: leases, or jobs on five, three, far, or memory; calm has no faults")
	flags.DurationVar(&o.duration, "duration", 5*time.Minute, "how long faults happen; starting, ending and judging come on top")
	flags.Uint64Var(&o.seed, "seed", 0, "determines the schedule of faults, and the clocks; 0 draws one")
	flags.StringVar(&o.keep, "keep", "", "keep the journals in this new `directory`; they are kept anyway if there are violations")
	flags.StringVar(&o.again, "check", "", "start nothing, and judge the journals in this `directory` again")
	flags.BoolVar(&o.verbose, "v", false, "print each fault as it happens")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q: everything is set by flags, see -help", flags.Arg(0))
	case o.duration < minDuration || o.duration > maxDuration:
		return nil, fmt.Errorf("-duration %v is not between %v and %v", o.duration, minDuration, maxDuration)
	}
	if o.workload, err = plan.Find(workload); err != nil {
		return nil, fmt.Errorf("-workload: %w", err)
	}
	if _, err := os.Stat(o.keep); o.keep != "" && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("-keep %s exists: name a directory that does not", o.keep)
	}
	for o.seed == 0 {
		o.seed = rand.Uint64() >> 32 // short enough to be typed
	}
	return o, nil
}

// command is the command line that repeats the schedule of faults.
func (o *options) command() string {
	return fmt.Sprintf("go run ./tools/torture -workload %s -seed %d -duration %s", o.workload.Name, o.seed, o.duration)
}

// complain prints an error.
func complain(err error) int {
	fmt.Fprintf(os.Stderr, "torture: %v\n", err)
	return exitTrouble
}

// torture is the program, and returns its exit code.
func torture(args []string, out io.Writer) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitPass
	case err != nil:
		return complain(err)
	case o.again != "":
		return judge(o.again, out)
	}
	fmt.Fprintln(out, o.command())
	// A second signal ends the process at once, and what it started with it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	hung := time.AfterFunc(2*o.duration+overtime, func() {
		fmt.Fprintln(os.Stderr, "torture: not done long after the faults, so something hangs:")
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 1)
		os.Exit(exitTrouble)
	})
	defer hung.Stop()

	dir := o.keep
	if dir == "" {
		dir, err = os.MkdirTemp("", "torture-")
	} else {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return complain(fmt.Errorf("no directory for the journals: %w", err))
	}
	if err := (&run{options: o, dir: dir, out: out}).run(ctx); err != nil {
		_ = complain(err)
		return complain(fmt.Errorf("journals: %s", dir))
	}
	code := judge(dir, out)
	if code == exitPass && o.keep == "" {
		if err := os.RemoveAll(dir); err != nil {
			return complain(err)
		}
	} else {
		fmt.Fprintf(out, "journals: %s; judge them again with -check %s\n", dir, dir)
	}
	if ctx.Err() != nil && code == exitPass {
		return exitInterrupted
	}
	return code
}

// judge has a history checked, prints the report and returns the exit code.
func judge(dir string, out io.Writer) int {
	h, err := history.Open(dir)
	if err != nil {
		return complain(err)
	}
	v := checker.Check(h, jobs.All())
	v.Text(out)
	if len(v.Violations) > 0 {
		return exitViolation
	}
	return exitPass
}
