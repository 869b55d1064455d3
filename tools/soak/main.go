// Soak runs scheduled jobs of all kinds on five replica processes for minutes, kills, freezes and
// rolls the replicas and restarts the servers meanwhile, and a checker reads what each replica did:
//
//	go run ./tools/soak -duration 10m
//
// It prints the seed of the faults, which determines all of them, and a report. It exits with 1 if
// a promise was broken, with 2 if it could not run, and with 130 if it was interrupted.
// docs/guarantees.md says what it does.
//
// Its frame is package harness, which the chaos program has too. Its own are these packages: work
// is the jobs, replica is what a client does with them, plan decides which faults happen and
// nemesis makes them happen, record is what both write down, checker judges that, and report tells.
// This package puts them together.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/tenure-dev/tenure/tools/harness"
	"github.com/tenure-dev/tenure/tools/harness/clients"
	"github.com/tenure-dev/tenure/tools/soak/checker"
	"github.com/tenure-dev/tenure/tools/soak/plan"
	"github.com/tenure-dev/tenure/tools/soak/record"
	"github.com/tenure-dev/tenure/tools/soak/replica"
	"github.com/tenure-dev/tenure/tools/soak/report"
	"github.com/tenure-dev/tenure/tools/soak/work"
)

// maxDuration is so short because the journals are read into memory.
const maxDuration = 24 * time.Hour

func main() {
	if os.Getenv(clients.Variable) != "" {
		os.Exit(clients.Main(os.Stdin, os.Stdout, replica.Begin))
	}
	os.Exit(soakMain(os.Args[1:], os.Stdout))
}

func soakMain(args []string, out io.Writer) int {
	p := &program{Options: harness.Options{Name: "soak", Duration: 10 * time.Minute}}
	return harness.Main(&p.Options, p, args, out)
}

// program implements harness.Program.
type program struct {
	harness.Options
	name     string // of the topology
	topology plan.Topology
}

// Flags implements harness.Program.
func (p *program) Flags(flags *flag.FlagSet) {
	flags.StringVar(&p.name, "topology", plan.Topologies()[0].Name, "servers, distances and faults: "+strings.Join(plan.Names(), ", "))
}

// Check implements harness.Program.
func (p *program) Check() (err error) {
	if p.topology, err = plan.Find(p.name); err != nil {
		return fmt.Errorf("-topology: %w", err)
	}
	if p.Duration > maxDuration {
		return fmt.Errorf("-duration %v is more than %v", p.Duration, maxDuration)
	}
	return nil
}

// Command implements harness.Program.
func (p *program) Command() string {
	return fmt.Sprintf("go run ./tools/soak -topology %s -seed %d -duration %s", p.topology.Name, p.Seed, p.Duration)
}

func (p *program) faults() []plan.Fault { return plan.Plan(p.Seed, p.topology, p.Duration) }

// Plan implements harness.Program.
func (p *program) Plan() []fmt.Stringer { return harness.Lines(p.faults()) }

// account is what is known of a soak besides its journals.
type account struct {
	harness.Account
	Topology string `json:"topology"`
	OverAt   int64  `json:"over_at"` // Over by the machine's clock, in milliseconds since 1970
}

// Judge implements harness.Program.
func (p *program) Judge(files *harness.Archive) (harness.Report, error) {
	var acc account
	if err := files.Account(&acc); err != nil {
		return nil, err
	}
	topology, err := plan.Find(acc.Topology)
	if err != nil {
		return nil, fmt.Errorf("the account of the run: %w", err)
	}
	h := &checker.History{
		Jobs: work.Jobs(), Servers: topology.Servers, Leftover: acc.Leftover, Failures: acc.Failures,
		Over: acc.Over, Halted: acc.Halted, OverAt: acc.OverAt,
	}
	if h.Records, h.Lives, h.Strikes, err = harness.ReadRun[record.Record, record.Strike](files); err != nil {
		return nil, err
	}
	r := report.New(checker.Check(h), topology.Servers)
	r.Run, r.Topology = acc.Run, acc.Topology
	return r, nil
}
