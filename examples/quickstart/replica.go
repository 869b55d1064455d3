package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/redlock"
)

// replicaVariable makes this program a replica.
const replicaVariable = "TENURE_QUICKSTART_REPLICA"

const (
	// work is how long a run takes: long enough to be killed in the middle of it.
	work = 200 * time.Millisecond
	// stopLimit is after how long a replica that was told to stop ends in disorder.
	stopLimit = 5 * time.Second
)

// replicaMain is a replica's process. It ends when it gets a signal or when its input ends, which happens also when
// the supervisor was killed: no replica is left behind.
func replicaMain(in io.Reader, out io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() {
		time.AfterFunc(stopLimit, func() { os.Exit(exitFailed) })
	})

	input := bufio.NewReader(in)
	var job assignment
	if err := json.NewDecoder(input).Decode(&job); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart: this process is started by another one, which tells it what to do; "+
			"to start the program yourself unset "+replicaVariable)
		return exitUsage
	}
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, input)
		cancel()
	}()
	if err := serve(ctx, job, &reporter{out: out}); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		return exitFailed
	}
	return exitOK
}

// serve is what a service does: it opens the Quorum, wires gocron, runs its jobs until ctx ends, and stops in
// this order: the jobs, then what permits them, then the Quorum.
func serve(ctx context.Context, job assignment, events *reporter) (err error) {
	q, err := redlock.Open(job.Nodes,
		redlock.WithPrefix("quickstart"), // the service's name
		redlock.WithTTL(job.TTL),
		redlock.WithIdentity(fmt.Sprintf("replica %s (pid %d)", job.Replica, os.Getpid())))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()

	wired, err := wire(q, job, events)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, wired.end()) }()

	s, err := gocron.NewScheduler(wired.option)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Shutdown()) }()

	_, err = s.NewJob(
		gocron.CronJob("* * * * * *", true),
		gocron.NewTask(func(ctx context.Context) {
			now := time.Now()
			events.report(event{Kind: kindRun, At: now, Tick: tickAt(now), Token: wired.token()})
			select {
			case <-time.After(work):
			case <-ctx.Done():
			}
		}),
		gocron.WithName(job.Name),
	)
	if err != nil {
		return err
	}
	s.Start()
	events.report(event{Kind: kindReady})
	<-ctx.Done()
	return nil
}
