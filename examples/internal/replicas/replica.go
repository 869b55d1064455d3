// Package replicas runs several replicas of an example's service, each in a process of its own. The
// program starts itself once more for each replica. A Group is the side of the process that the
// user started, Main is the replica's side.
//
// The two talk in lines of JSON. The first line on a replica's standard input has its settings: not
// arguments, because everybody sees those, and URLs of nodes contain passwords. A replica stops
// when its input ends, which happens also when its parent is killed: no replica is left behind. Its
// events are lines on its standard output.
package replicas

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
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

// Main is a replica's process. It serves until a signal comes or the input ends, and ends with the
// process.
func Main[S any](serve func(ctx context.Context, settings S, report func(event any)) error) {
	ctx, stop := Context()
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ExitAfter(ctx)
	input := bufio.NewReader(os.Stdin)
	var settings S
	if err := json.NewDecoder(input).Decode(&settings); err != nil {
		Exit(fmt.Errorf("another process starts this one and tells it what to do; to start the program yourself unset %s", variable))
	}
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, input)
		cancel()
	}()
	var mu sync.Mutex
	Exit(serve(ctx, settings, func(event any) { // in one piece, so that a kill leaves no half of it
		line, err := json.Marshal(event)
		if err != nil {
			panic(err)
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = os.Stdout.Write(append(line, '\n')) // fails only when the reader is gone
	}))
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

// Say prints a line with the time.
func Say(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

// Exit ends the process: with 1, after it has printed the error, if there is one.
func Exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
