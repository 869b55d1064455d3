package clients

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/internal/clock"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/tools/torture/history"
	"github.com/tenure-dev/tenure/tools/torture/plan"
)

// logSuffix ends the name of a client's log file. Panics and the last error of the client are in
// this log, too.
const logSuffix = ".log"

// patience is how long a client may take to begin.
const patience = 20 * time.Second

// assignment is the order that a client process is given. The process calls child.Work when it
// works, and ends in order when child.Work returns.
type assignment struct {
	Name     string `json:"name"` // of this life: c3.2
	Number   int    `json:"number"`
	Life     int    `json:"life"`     // from 1
	Journals string `json:"journals"` // directory
	Settings `json:"settings"`
}

// Settings describe the run, and the machine of a client.
type Settings struct {
	URLs    []string      `json:"urls"`
	Trusted string        `json:"trusted,omitempty"` // the file of certificates that it trusts
	Ahead   time.Duration `json:"ahead"`             // how far its wall clock is ahead
	Leaps   []plan.Leap   `json:"leaps,omitempty"`   // of that clock
	Zone    string        `json:"zone"`              // of its machine
	Start   time.Time     `json:"start"`             // of the run
	Seed    uint64        `json:"seed"`
	Jobs    bool          `json:"jobs"`    // it is a replica with jobs
	Version int           `json:"version"` // of its jobs
	Clients int           `json:"clients"` // number of clients; a spare one has a number from this on, and another list of nodes
}

// Now returns the time of the client's machine, whose clock is ahead of the others and leaps.
func (s *Settings) Now() time.Time { return s.At(time.Now()) }

// At returns what the client's clock shows at a time.
func (s *Settings) At(now time.Time) time.Time {
	ahead := s.Ahead
	for _, l := range s.Leaps {
		if !s.Start.Add(l.At).After(now) {
			ahead += l.By
		}
	}
	return now.Add(ahead)
}

// Begin is a workload: it begins to work in a client process, and returns the function that closes
// everything in order. With conclude, that function first makes sure of what must hold after the
// faults.
type Begin func(*Process) (end func(conclude bool) error, err error)

// Process is a client process, as its workload sees it.
type Process struct {
	assignment
	Logger  *slog.Logger
	journal *history.Writer
}

// Open opens a Quorum from the environment, as services and the tenure command do. It sets the
// environment variables first.
func (s *Settings) Open(prefix string, opts ...redlock.Option) (*redlock.Quorum, error) {
	for name, value := range map[string]string{"TENURE_NODES": strings.Join(s.URLs, ","), "TENURE_TLS_CA": s.Trusted, "TENURE_PREFIX": prefix} {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	return redlock.FromEnv(append(opts, redlock.WithTTL(plan.LeaderTTL), redlock.WithMaxTTL(plan.LeaderTTL), redlock.WithClockSkew(plan.Skew))...)
}

// Append writes a record to the journal of this life. The time of the record is now if it has none.
// If the record cannot be written, the process ends, because its history could not be judged.
// Append is safe for concurrent use.
func (p *Process) Append(record history.Record) {
	if record.At == 0 {
		record.At = history.Now()
	}
	if err := p.journal.Append(record); err != nil {
		p.Logger.Error("the client ends", "error", err)
		os.Exit(1)
	}
}

// assigned reads the assignment of this process, and creates its log and its journal.
func assigned() (*Process, error) {
	p := &Process{}
	if err := child.Settings(&p.assignment); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(p.Journals, p.Name+logSuffix))
	if err != nil {
		return nil, err
	}
	p.Logger = slog.New(slog.NewTextHandler(log, nil))
	p.journal, err = history.Create(filepath.Join(p.Journals, p.Name+history.Suffix))
	debug.SetTraceback("all")
	return p, errors.Join(err, debug.SetCrashOutput(log, debug.CrashOptions{}))
}

// Main runs a client process, which child.IsReplica tells: it calls begin, works until it is told
// to stop, calls the function that begin returned, and records which goroutines are left. It
// returns the exit status: 0 if the process was stopped in order.
func Main(begin Begin) int {
	p, err := assigned()
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		return 1
	}
	if err := errors.Join(p.run(begin), p.journal.Close()); err != nil {
		p.Logger.Error("the client ends", "error", err)
		return 1
	}
	return 0
}

func (p *Process) run(begin Begin) error {
	hangs := time.AfterFunc(patience, func() { panic(fmt.Sprintf("client %s does not work within %s", p.Name, patience)) })
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { p.watch(ctx) })
	defer watching.Wait()
	defer cancel()
	clock.Wall = p.Now
	end, err := begin(p)
	if err != nil {
		return err
	}
	hangs.Stop()
	child.Work()
	_, absent := os.Stat(filepath.Join(p.Journals, concluding))
	if err := end(absent == nil); err != nil {
		return err
	}
	cancel()
	watching.Wait()
	last := history.Record{Kind: history.Stop}
	if err := goleak.Find(before); err != nil {
		last.Text = err.Error()
	}
	p.Append(last)
	return nil
}

// watch records each time in which the process did not run: it was frozen, or the machine was busy.
func (p *Process) watch(ctx context.Context) {
	const every, notable = 50 * time.Millisecond, 200 * time.Millisecond
	for last := time.Now(); clock.Sleep(ctx, every) == nil; last = time.Now() {
		if gap := time.Since(last); gap > notable {
			p.Append(history.Record{Kind: history.Pause, At: history.Now(), Delay: gap})
		}
	}
}

// Tests is the TestMain of a package whose tests start clusters. Its client processes start with
// begin, which is nil if there are none.
func Tests(m goleak.TestingM, begin Begin) {
	if child.IsReplica() {
		os.Exit(Main(begin))
	}
	// toxiproxy leaks goroutines of a connection whose peer went away while bytes were on their way
	// to it: they wait for a receiver that is gone.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	)
}
