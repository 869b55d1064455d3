// Quickstart runs three replicas of a service, each an operating-system process with a gocron job that is due every
// second, and shows that every tick runs on one of them:
//
//	go run ./examples/quickstart
//
// It needs no server: five nodes run inside the first process, which then starts itself once more for each replica. It
// prints a line for each run and each change of leader, with the fencing token that a database would check. After a
// third of the time it kills the leader with SIGKILL in the middle of a run, measures how long the others take, and
// restarts what it killed. In the end it stops all of them in order, the leader first, and exits with 1 if a
// tick ran twice or nobody took over.
//
// There are two ways to wire gocron, and a scheduler needs one of them:
//
//	-mode elector   one leader runs every job (package elector, gocron.WithDistributedElector)
//	-mode locker    whoever gets the lease of the tick runs it (package scheduler, gocron.WithDistributedLocker)
//
// Real servers, which have to be running, are named by -nodes or by the environment variable TENURE_NODES. Passwords
// are better kept in the latter; neither is ever printed:
//
//	go run ./examples/quickstart -nodes valkey://127.0.0.1:7001,valkey://127.0.0.1:7002,valkey://127.0.0.1:7003
//
// Files: supervisor.go tells the story and process.go starts and ends the replicas; replica.go is what a service looks
// like, with its wiring in wiring.go; ledger.go counts the runs of each tick; the two kinds of processes talk in the lines of
// message.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1   // a tick ran twice, nobody took over, or something did not work
	exitUsage       = 2   // the flags make no sense
	exitInterrupted = 130 // as a shell reports SIGINT
)

func main() {
	if os.Getenv(replicaVariable) != "" {
		os.Exit(replicaMain(os.Stdin, os.Stdout))
	}
	os.Exit(supervisorMain(os.Args[1:]))
}

// supervisorMain is the process that the user started.
func supervisorMain(args []string) int {
	cfg, err := parseFlags(args, os.Getenv(nodesVariable))
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		if printed := new(flagError); !errors.As(err, &printed) {
			fmt.Fprintln(os.Stderr, "quickstart:", err)
		}
		return exitUsage
	}
	// A second signal ends the process at once, and the replicas with it: see replica.go.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer context.AfterFunc(ctx, stop)()

	err = supervise(ctx, cfg, newConsole(os.Stdout, os.Stderr))
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "quickstart: interrupted")
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		return exitFailed
	}
	return exitOK
}
