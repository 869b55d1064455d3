// Fencing shows how a resource checks fencing tokens, and what happens if it does not:
//
//	go run ./examples/fencing
//
// It needs no server: five nodes run inside the process. Holder A acquires a lease, is held up
// between asking its lease and writing, and writes when its lease has run out and B has the next
// one. An SQLite database and an HTTP server refuse A's write by its token. Then the same happens
// without the check, and B's write is lost. The program exits with 1 if anything goes otherwise.
//
// Files to take from: account.go is a table that checks tokens, transfer.go checks several rows in
// one transaction; header.go and handler.go are an HTTP server that does, remote.go is its client.
// docs/leases.md explains them. The rest is the story: story.go tells it, of the processes in
// holder.go and the resources in stage.go; unguarded.go is what not to do.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1 // a step did not go as told
)

const nodeCount = 5

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run tells the story twice and returns the exit code.
func run(ctx context.Context, out, errOut io.Writer) int {
	nodes, err := redlocktest.New(nodeCount)
	if err != nil {
		fmt.Fprintln(errOut, "fencing: cannot start nodes:", err)
		return exitFailed
	}
	defer nodes.Close()
	logger := slog.New(slog.NewTextHandler(errOut, nil))

	fmt.Fprintln(out, "With fencing tokens checked by the resources:")
	if err := tell(ctx, out, nodes.URLs(), true, logger); err != nil {
		fmt.Fprintln(errOut, err)
		return exitFailed
	}
	fmt.Fprintln(out, "\nThe same without the check:")
	if err := tell(ctx, out, nodes.URLs(), false, logger); err != nil {
		fmt.Fprintln(errOut, err)
		return exitFailed
	}
	return exitOK
}

// tell tells the story on a stage of its own.
func tell(ctx context.Context, out io.Writer, nodes []string, guard bool, logger *slog.Logger) (err error) {
	stage, err := openStage(ctx, guard, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	return (&story{out: out, nodes: nodes, stores: stage.stores, guard: guard}).tell(ctx)
}
