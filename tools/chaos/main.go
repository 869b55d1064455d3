// Chaos puts the library under fire and looks for what must never happen: five real servers behind
// links that fail, at least eight client processes that fail as well, and a checker that reads what
// each of them saw:
//
//	go run ./tools/chaos -duration 5m
//
// It prints the seed of the faults, which determines all of them, and a report. It exits with 1 if
// a promise was broken, with 2 if it could not run, and with 130 if it was interrupted.
// docs/guarantees.md says what it does.
//
// Its frame is package harness, which the soak has too. Its own are these packages: client is what
// a client does, plan decides which faults happen, resource is what the leases protect, record is
// what all of them write down, checker judges that, and report tells. This package puts them
// together.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/tenure-dev/tenure/tools/chaos/checker"
	"github.com/tenure-dev/tenure/tools/chaos/client"
	"github.com/tenure-dev/tenure/tools/chaos/plan"
	"github.com/tenure-dev/tenure/tools/chaos/record"
	"github.com/tenure-dev/tenure/tools/chaos/report"
	"github.com/tenure-dev/tenure/tools/chaos/resource"
	"github.com/tenure-dev/tenure/tools/harness"
	"github.com/tenure-dev/tenure/tools/harness/clients"
)

const (
	servers = 5
	prefix  = "chaos"

	minClients = 8
	maxClients = 100
	minKeys    = 2
	maxKeys    = 26
	tickKeys   = 2
	operators  = 2

	writesName = "writes" // journal of the resource
)

// ttls are the keys' in turn: short, so that much happens.
var ttls = []time.Duration{time.Second, 1500 * time.Millisecond, 2 * time.Second}

func main() {
	if os.Getenv(clients.Variable) != "" {
		os.Exit(clients.Main(os.Stdin, os.Stdout, client.Begin))
	}
	os.Exit(chaosMain(os.Args[1:], os.Stdout))
}

func chaosMain(args []string, out io.Writer) int {
	p := &program{Options: harness.Options{Name: "chaos", Duration: 5 * time.Minute, PrintPlan: true}}
	return harness.Main(&p.Options, p, args, out)
}

// program implements harness.Program.
type program struct {
	harness.Options
	clients int
	keys    int
	workers int
	skew    time.Duration
	control client.Control
}

// Flags implements harness.Program.
func (p *program) Flags(flags *flag.FlagSet) {
	flags.IntVar(&p.clients, "clients", minClients, "client processes")
	flags.IntVar(&p.keys, "keys", 4, "keys that the clients want")
	flags.IntVar(&p.workers, "workers", 3, "leases that each client holds or wants at a time")
	flags.DurationVar(&p.skew, "skew", 500*time.Millisecond, "what clients are told of the difference between clocks (WithClockSkew)")
	flags.StringVar((*string)(&p.control), "control", "", "weaken the clients to see that it is found: "+string(client.NoGate)+" (WithoutRestartGate)")
}

// Check implements harness.Program.
func (p *program) Check() error {
	switch {
	case p.clients < minClients || p.clients > maxClients:
		return fmt.Errorf("-clients %d is not between %d and %d", p.clients, minClients, maxClients)
	case p.keys < minKeys || p.keys > maxKeys:
		return fmt.Errorf("-keys %d is not between %d and %d", p.keys, minKeys, maxKeys)
	case p.workers < 1 || p.workers > 100:
		return fmt.Errorf("-workers %d is not between 1 and 100", p.workers)
	case !slices.Contains([]client.Control{client.NoControl, client.NoGate}, p.control):
		return fmt.Errorf("-control %q is unknown: use %s", p.control, client.NoGate)
	}
	return nil
}

// Command implements harness.Program.
func (p *program) Command() string {
	text := fmt.Sprintf("go run ./tools/chaos -seed %d -duration %s -clients %d -keys %d -workers %d -skew %s",
		p.Seed, p.Duration, p.clients, p.keys, p.workers, p.skew)
	if p.control != client.NoControl {
		text += " -control " + string(p.control)
	}
	return text
}

func (p *program) faults() []plan.Fault {
	return plan.Plan(p.Seed, plan.Config{
		Duration: p.Duration, Servers: servers, Clients: p.clients, Keys: p.keys, TTL: maxTTL(), Recovery: p.recovery(),
	})
}

// Plan implements harness.Program.
func (p *program) Plan() []fmt.Stringer { return harness.Lines(p.faults()) }

// keyring is the keys with their TTLs.
func (p *program) keyring() []client.Key {
	keys := make([]client.Key, p.keys)
	for i := range keys {
		keys[i] = client.Key{Name: string(rune('a' + i)), TTL: ttls[i%len(ttls)]}
	}
	return keys
}

// tickring is the keys whose leases are ticks. A pause waits for as long as an acquisition with the
// longest TTL may take.
func tickring() []client.Key {
	keys := make([]client.Key, tickKeys)
	for i := range keys {
		keys[i] = client.Key{Name: fmt.Sprint("tick", i+1), TTL: maxTTL()}
	}
	return keys
}

func maxTTL() time.Duration { return slices.Max(ttls) }

// recovery is for how long a restarted server does not vote, at most: the longest TTL or twice the
// skew, and the skew, by clocks that may be fast, rounded up twice; and a second until every client
// has noticed. It only spaces the faults; what the library does is seen. Without the gate a server
// votes at once, and the faults come closer.
func (p *program) recovery() time.Duration {
	if p.control == client.NoGate {
		return maxTTL()
	}
	return max(maxTTL(), 2*p.skew) + p.skew + 3*time.Second
}

// account is what is known of a run besides its journals.
type account struct {
	harness.Account
	Settings checker.Settings `json:"settings"`
	Stuck    int              `json:"stuck"` // links that were made anew
}

// Judge implements harness.Program.
func (p *program) Judge(files *harness.Archive) (harness.Report, error) {
	var acc account
	if err := files.Account(&acc); err != nil {
		return nil, err
	}
	h := &checker.History{Settings: acc.Settings, Leftover: acc.Leftover, Failures: acc.Failures, Over: acc.Over}
	var err error
	if h.Records, h.Lives, h.Strikes, err = harness.ReadRun[record.Record, record.Strike](files); err != nil {
		return nil, err
	}
	if h.Writes, err = harness.Read[resource.Write](files, writesName); err != nil {
		return nil, err
	}
	r := report.New(checker.Check(h), servers)
	r.Run, r.ReplacedLinks = acc.Run, acc.Stuck
	return r, nil
}
