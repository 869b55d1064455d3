// Torture runs the library under faults and looks for broken promises. Real servers stand behind
// links that fail, client processes fail as well, and a checker reads what each of them recorded.
// Clients take leases, or they are replicas with scheduled jobs, in one of four topologies:
//
//	go run ./tools/torture -workload leases -duration 5m
//	go run ./tools/torture -workload three -duration 5m
//
// It prints the seed of the faults, which determines all of them, and a report. It exits with 1 if
// a promise was broken, and with 2 if it could not run. A signal ends it at once, with all that it
// started; the journals stay. docs/testing.md describes it.
//
// Package plan decides which faults happen. Package nemesis makes them happen, to the servers and
// links of cluster and to the processes of clients. Packages leases and jobs are the workloads of
// the clients, history records everything, and checker judges the history.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/torture/checker"
	"github.com/tenure-dev/tenure/tools/torture/clients"
	"github.com/tenure-dev/tenure/tools/torture/cluster"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/jobs"
	"github.com/tenure-dev/tenure/tools/torture/leases"
	"github.com/tenure-dev/tenure/tools/torture/nemesis"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// The exit codes.
const (
	exitPass      = 0
	exitViolation = 1
	exitTrouble   = 2
)

const (
	// overtime is how long the program may take beyond twice the time of the faults before it ends
	// itself.
	overtime    = 4 * time.Minute
	minDuration = 5 * time.Second
	maxDuration = 24 * time.Hour // because the journals are read into memory
)

func main() {
	if child.IsReplica() {
		os.Exit(clients.Main(begin))
	}
	code, _ := torture(os.Args[1:], os.Stdout)
	os.Exit(code)
}

// work is what clients do.
type work struct {
	begin    clients.Begin
	prefix   string        // of their keys
	patience time.Duration // for one to stop in order
	spare    int           // further clients, with another list of nodes
}

// works are the work with leases, and with jobs.
var works = map[bool]work{
	false: {leases.Begin, leases.Prefix, leases.StopPatience, 1},
	true:  {jobs.Begin, jobs.Prefix, jobs.StopPatience, 0},
}

// begin starts the work of a client process.
func begin(p *clients.Process) (end func(conclude bool) error, err error) {
	return works[p.Jobs].begin(p)
}

// options are the flags.
type options struct {
	workload plan.Topology
	duration time.Duration
	seed     uint64
	keep     string // directory for the journals; empty for a temporary one
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

// complain prints an error and returns the exit code for trouble.
func complain(err error) int {
	fmt.Fprintf(os.Stderr, "torture: %v\n", err)
	return exitTrouble
}

// torture runs the program. It returns its exit code, and the verdict if there is one.
func torture(args []string, out io.Writer) (code int, v *checker.Verdict) {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitPass, nil
	case err != nil:
		return complain(err), nil
	}
	fmt.Fprintln(out, o.command())
	debug.SetTraceback("all") // a panic exits with 2, too
	hung := time.AfterFunc(2*o.duration+overtime, func() { panic("torture: not done long after the faults, so something hangs") })
	defer hung.Stop()

	dir := o.keep
	if dir == "" {
		dir, err = os.MkdirTemp("", "torture-")
	} else {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return complain(fmt.Errorf("no directory for the journals: %w", err)), nil
	}
	fmt.Fprintf(out, "journals: %s\n", dir)
	if v, err = (&run{options: o, dir: dir, out: out}).run(); err != nil {
		return complain(err), nil
	}
	if code = tell(v, out); code == exitPass && o.keep == "" {
		if err := os.RemoveAll(dir); err != nil {
			return complain(err), v
		}
	}
	return code, v
}

// tell prints the verdict, and returns the exit code for it.
func tell(v *checker.Verdict, out io.Writer) int {
	v.Text(out)
	if len(v.Violations) > 0 {
		return exitViolation
	}
	return exitPass
}

// patience is how long after the faults the run waits for the next missing tick to be caught up. It
// covers the longest run, the longest TTL, and as much again for the replicas' clocks and a busy
// machine.
const patience = 12 * time.Second

// run is one run of the program.
type run struct {
	*options
	dir     string // of the journals
	out     io.Writer
	servers *cluster.Cluster
	group   *clients.Group
	nemesis *nemesis.Nemesis
}

// run starts everything, lets the faults happen, ends everything, and judges. An error is trouble
// with the set-up, not a violation.
func (r *run) run() (v *checker.Verdict, err error) {
	acc := history.Account{Workload: r.workload.Name, Command: r.command(), Servers: r.workload.Servers, Undecided: time.Minute}
	// A key stays longer than its TTL if the server's clock was moved back after the key had been
	// set.
	work, ttl := works[r.workload.Jobs], plan.LeaderTTL+plan.MaxJump
	if r.servers, err = cluster.New(r.workload, work.prefix, r.dir); err != nil {
		return nil, err
	}
	defer r.servers.Close()
	r.nemesis = &nemesis.Nemesis{Cluster: r.servers}
	cfg := clients.Config{Count: r.workload.Clients, Patience: work.patience, Spare: work.spare, Journals: history.Clients(r.dir)}
	operator, err := r.operate(work.prefix)
	if err != nil {
		return nil, err
	}
	defer operator.Close()
	settings, err := r.settings(cfg.Count + cfg.Spare)
	if err != nil {
		return nil, err
	}
	r.nemesis.Clock = func(number int) time.Time { return settings[number].Now() }
	cfg.Settings = func(number int) clients.Settings {
		s := settings[number]
		s.Version = int(r.nemesis.Version.Load())
		return s
	}
	if r.group, err = clients.New(cfg); err != nil {
		return nil, err
	}
	defer r.group.Close()
	r.nemesis.Clients = r.group
	if err := r.group.StartAll(); err != nil {
		return nil, err
	}
	fmt.Fprintf(r.out, "%d servers and %d client processes run; faults for %s\n", r.workload.Servers, r.group.Count, r.duration)

	end, cancel := context.WithTimeout(context.Background(), r.duration)
	defer cancel()
	printed := io.Discard
	if r.verbose {
		printed = r.out
	}
	acc.Began = history.Now()
	if err := r.nemesis.Run(end, printed, plan.Faults(r.seed, r.workload, r.duration)); err != nil {
		return nil, err
	}
	<-end.Done()
	acc.Over, acc.OverAt, acc.Strikes = history.Now(), time.Now().UnixMilli(), r.nemesis.Strikes()
	fmt.Fprintln(r.out, "the faults are over")
	if r.workload.Jobs {
		err = r.settle(acc)
	}
	if err := errors.Join(err, r.group.Conclude()); err != nil {
		acc.Failures = append(acc.Failures, err.Error())
	}
	acc.Lives = r.group.Close()
	if acc.Leftover, err = r.servers.Leftover(work.prefix, ttl, acc.Lives); err != nil {
		return nil, err
	}
	return judge(acc, r.dir)
}

// judge checks the history of a run, which may still go on.
func judge(acc history.Account, dir string) (*checker.Verdict, error) {
	h, err := acc.Of(dir)
	if err != nil {
		return nil, err
	}
	return checker.Check(h, jobs.All()), nil
}

// settle waits until the checker finds nothing missing, or until nothing more has been caught up
// for some time.
func (r *run) settle(acc history.Account) error {
	least, better := math.MaxInt, time.Now()
	for {
		began := time.Now()
		acc.Lives = r.group.Lives()
		v, err := judge(acc, r.dir)
		if err != nil {
			return err
		}
		missing := len(v.Violations)
		if missing < least {
			least, better = missing, time.Now()
		}
		if missing == 0 || time.Since(better) > patience {
			return nil
		}
		time.Sleep(max(time.Second, 3*time.Since(began)))
	}
}

// zones are the time zones of the replicas' machines. The ticks of the jobs are the same in all.
var zones = []string{"Asia/Kathmandu", "America/Los_Angeles", "Pacific/Kiritimati", "Europe/Berlin", "UTC"}

// settings returns the settings of the clients, each with its own servers and clock. A spare client
// has another list of nodes.
func (r *run) settings(count int) (all []clients.Settings, err error) {
	start := time.Now()
	for number := range count {
		s := clients.Settings{
			URLs: r.servers.URLs(plan.SideOf(number)), Trusted: r.servers.Trusted(), Zone: zones[number%len(zones)], Start: start,
			Seed: r.seed, Clients: r.workload.Clients, Jobs: r.workload.Jobs,
		}
		s.Ahead, s.Leaps = plan.Clock(r.seed, r.workload, number, r.duration)
		if number >= r.workload.Clients {
			s.URLs = s.URLs[:3]
		}
		if r.workload.Distance > 0 {
			if s.URLs, err = r.servers.Routes(r.workload.Distances(number)); err != nil {
				return nil, err
			}
		}
		all = append(all, s)
	}
	return all, nil
}

// operate opens the Quorum of an operator. Through it the nemesis finds the holders of keys, and
// pauses and resumes jobs.
func (r *run) operate(prefix string) (operator *redlock.Quorum, err error) {
	silent := slog.New(slog.DiscardHandler)
	machine := clients.Settings{URLs: r.servers.URLs(plan.Left), Trusted: r.servers.Trusted()}
	if operator, err = machine.Open(prefix, redlock.WithIdentity("operator"), redlock.WithLogger(silent)); err != nil {
		return nil, err
	}
	orders, err := admin.New(operator, admin.WithLogger(silent))
	if err != nil {
		return nil, errors.Join(err, operator.Close())
	}
	var last [plan.Keys]atomic.Int32 // clients that were found before: no quorum may tell who holds a key
	r.nemesis.Holder = func(key int) int {
		if held, err := operator.Holder(context.Background(), leases.Keys[key].Name); err == nil {
			last[key].Store(int32(clients.Number(held.Identity)))
		}
		return int(last[key].Load())
	}
	r.nemesis.Job = jobs.PausedName
	r.nemesis.Pause = func(ctx context.Context, job int) error {
		_, err := orders.Pause(ctx, admin.Job(jobs.PausedName(job)), admin.PauseOptions{Force: true})
		return err
	}
	r.nemesis.Resume = func(ctx context.Context, job int) error {
		err := orders.Resume(ctx, admin.Job(jobs.PausedName(job)), "")
		if errors.Is(err, admin.ErrNotPaused) { // an earlier try has done it
			err = nil
		}
		return err
	}
	return operator, nil
}
