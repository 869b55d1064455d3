package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"go.uber.org/goleak"

	"github.com/tenure-dev/tenure/internal/child"
	"github.com/tenure-dev/tenure/tools/torture/history"
)

// Variable is set for client processes: main has to call Main then.
const Variable = "TENURE_CLIENT"

// logSuffix is how the name of a client's log ends, which its panics and its last error are in, too.
const logSuffix = ".log"

// patience is how long a client may take to begin.
const patience = 20 * time.Second

// assignment is what a client is told. It says by child.Work when it works, and ends in order when
// that returns; to conclude, it does first what its begin said.
type assignment struct {
	Name     string          `json:"name"` // of this life: c3.2
	Number   int             `json:"number"`
	Journals string          `json:"journals"` // directory
	Settings json.RawMessage `json:"settings"`
}

// Process is what a client process knows of itself.
type Process struct {
	assignment
	Logger *slog.Logger
	// Conclude is called before the end of the last process of a client, if begin has set it.
	Conclude func() error

	journal *history.Writer
}

// Settings reads the settings of the client.
func (p *Process) Settings(into any) error { return json.Unmarshal(p.assignment.Settings, into) }

// Append writes a record to the journal of this life, of now unless it says another time. What
// cannot be written ends the process: it could not be judged. It is safe for concurrent use.
func (p *Process) Append(record history.Record) {
	if record.At == 0 {
		record.At = history.Now()
	}
	if err := p.journal.Append(record); err != nil {
		p.Logger.Error("the client ends", "error", err)
		os.Exit(1)
	}
}

// Main is a client process: it begins, works until it is told to stop, then calls what begin
// returned, and writes down which goroutines are left. It returns the exit status: 0 if it was
// stopped in order.
func Main(begin func(*Process) (end func() error, err error)) int {
	p := &Process{}
	err := json.Unmarshal([]byte(os.Getenv(Variable)), &p.assignment)
	if err == nil {
		p.journal, err = history.Create(filepath.Join(p.Journals, p.Name+history.Suffix))
	}
	var log *os.File
	if err == nil {
		log, err = os.Create(filepath.Join(p.Journals, p.Name+logSuffix))
	}
	if err == nil {
		err = debug.SetCrashOutput(log, debug.CrashOptions{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "client: this process is started by another one:", err)
		return 1
	}
	p.Logger = slog.New(slog.NewTextHandler(log, nil))
	if err := errors.Join(p.run(begin), p.journal.Close()); err != nil {
		p.Logger.Error("the client ends", "error", err)
		return 1
	}
	return 0
}

func (p *Process) run(begin func(*Process) (func() error, error)) error {
	hangs := time.AfterFunc(patience, func() { panic(fmt.Sprintf("client %s does not work within %s", p.Name, patience)) })
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { p.watch(ctx) })
	defer watching.Wait()
	defer cancel()
	end, err := begin(p)
	if err != nil {
		return err
	}
	hangs.Stop()
	child.Work()
	if _, absent := os.Stat(filepath.Join(p.Journals, concluding)); absent == nil && p.Conclude != nil {
		err = p.Conclude()
	}
	if err := errors.Join(err, end()); err != nil {
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

// watch notes when the process did not run: it was frozen, or the machine was busy.
func (p *Process) watch(ctx context.Context) {
	const every, notable = 50 * time.Millisecond, 200 * time.Millisecond
	for last := time.Now(); Sleep(ctx, every); last = time.Now() {
		if gap := time.Since(last); gap > notable {
			p.Append(history.Record{Kind: history.Pause, At: history.Now(), Delay: gap})
		}
	}
}

// Tests is the TestMain of a package whose tests start clusters, and clients that begin so; nil if
// they start none.
func Tests(m goleak.TestingM, begin func(*Process) (func() error, error)) {
	if os.Getenv(Variable) != "" {
		os.Exit(Main(begin))
	}
	// toxiproxy leaves the goroutines of a connection behind whose peer went away while bytes were
	// on their way to it: nobody receives what they have to pass on.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
	)
}

// Sleep waits, and reports whether it could wait that long before ctx ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
