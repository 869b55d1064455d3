// Package replicas runs several replicas of an example's service, each in a process of its own. The
// program starts itself once more for each replica. A Group is the side of the process that the
// user started, Main is the replica's side.
//
// The two talk in lines of JSON. The first line on a replica's standard input has its settings.
// They come that way, and not as arguments, because the URLs of nodes contain passwords and
// everybody sees arguments. A replica stops when its input ends, which happens also when its parent
// is killed: no replica is left behind. Its events are lines on its standard output.
package replicas

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// variable makes a program a replica. A Group sets it.
const variable = "TENURE_REPLICA"

// IsReplica reports whether this process is a replica that a Group has started.
func IsReplica() bool { return os.Getenv(variable) != "" }

// stopLimit is how long a replica may take to stop. It then exits, whatever hangs.
const stopLimit = 8 * time.Second

// Main is a replica's process. It reads the settings and serves until a signal comes or the input
// ends. It returns the exit code: 1 after an error, 2 if no Group has started the process.
func Main[S any](serve func(context.Context, S, *Reporter) error) int {
	ctx, stop := Context()
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ExitAfter(ctx)

	input := bufio.NewReader(os.Stdin)
	var settings S
	if err := json.NewDecoder(input).Decode(&settings); err != nil {
		Complain(errors.New("another process starts this one and tells it what to do; " +
			"to start the program yourself unset " + variable))
		return 2
	}
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, input)
		cancel()
	}()
	if err := serve(ctx, settings, NewReporter(os.Stdout)); err != nil {
		Complain(err)
		return 1
	}
	return 0
}

// Context ends with the first SIGINT or SIGTERM. The second one ends the process at once.
func Context() (context.Context, func()) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// ExitAfter ends the process with 1 if it still runs a while after the end of ctx.
func ExitAfter(ctx context.Context) {
	context.AfterFunc(ctx, func() { time.AfterFunc(stopLimit, func() { os.Exit(1) }) })
}

// Reporter writes a replica's events. It is safe for concurrent use.
type Reporter struct {
	mu  sync.Mutex
	out io.Writer // guarded by mu
}

// NewReporter returns a Reporter that writes to out.
func NewReporter(out io.Writer) *Reporter { return &Reporter{out: out} }

// Report writes an event in one piece, so that a kill does not leave half of it. It panics if the
// event cannot be marshalled. A write fails only when the reader is gone. Then this process has
// been told to stop as well, so the error is dropped.
func (r *Reporter) Report(event any) {
	line, err := json.Marshal(event)
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = r.out.Write(append(line, '\n'))
}

// Say prints a line with the time.
func Say(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

// Complain prints an error, after the name of the replica or of the program.
func Complain(err error) {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if IsReplica() {
		name = "replica " + os.Getenv(variable)
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
}
