package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/tenure-dev/tenure/elector"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
)

// replicaVariable makes this program a replica of the process that started it.
const replicaVariable = "TENURE_OBSERVABILITY_REPLICA"

// childMain is a replica's process. It ends when it gets a signal or when its input ends, which happens also when
// the supervisor was killed: no replica is left behind.
func childMain(in io.Reader, out io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, endInDisorder)

	input := bufio.NewReader(in)
	var job assignment
	if err := json.NewDecoder(input).Decode(&job); err != nil {
		complain(errors.New("this process is started by another one, which tells it what to do; " +
			"to start the program yourself unset " + replicaVariable))
		return exitUsage
	}
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, input)
		cancel()
	}()
	if err := serve(ctx, job, &reporter{out: out}); err != nil {
		complain(fmt.Errorf("replica %s: %w", job.Replica, err))
		return exitFailed
	}
	return exitOK
}

// closing bounds what is sent and served at the end.
const closing = 2 * time.Second

// serve is what a service does until ctx ends. It stops in the order in which nothing is cut off: jobs, leases and the leadership, then the
// Quorum, then telemetry, which so reports the end of all of them.
func serve(ctx context.Context, job assignment, events *reporter) (err error) {
	logger := slog.New(tenureotel.NewLogHandler(slog.NewJSONHandler(os.Stderr, nil))).With("replica", job.Replica)
	closeWithin := func(end func(context.Context) error) {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		err = errors.Join(err, end(limited))
	}
	t, err := startTelemetry(ctx, job.Replica)
	if err != nil {
		return err
	}
	defer closeWithin(t.close)
	metrics, err := servePage(job.Listen, t.scrape)
	if err != nil {
		return err
	}
	defer closeWithin(metrics.close)
	q, err := redlock.Open(job.Nodes,
		redlock.WithPrefix("observability"), redlock.WithTTL(job.TTL), redlock.WithIdentity(job.Replica),
		redlock.WithTracer(t.tenure), redlock.WithLogger(logger))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	events.report(event{Replica: job.Replica, Kind: kindListens, Detail: metrics.addr})

	jobs, err := startJobs(q, t.tenure, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, jobs.stop()) }()

	var work sync.WaitGroup
	defer work.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop() // the work too, if the election fails
	work.Go(func() { takeOrders(ctx, q) })
	work.Go(func() { takeStock(ctx, q) })
	return lead(ctx, q, t.tenure, logger, job.Replica, events)
}

// poller is the election whose leader -kill-leader-after kills.
const poller = "poller"

// lead takes part in the election until ctx ends.
func lead(ctx context.Context, q *redlock.Quorum, tracer elector.CampaignTracer, logger *slog.Logger, replica string, events *reporter) error {
	e, err := elector.New(q, poller, elector.WithIdentity(replica), elector.WithTracer(tracer), elector.WithLogger(logger))
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	changes := e.Changes(watching)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for c := range changes {
			events.reportChange(replica, c)
		}
	})
	err = e.Run(ctx, poll)
	stop() // what has happened is still reported
	watcher.Wait()
	return err
}

// poll is what only the leader does. Its context ends when it no longer leads.
func poll(ctx context.Context, _ *elector.Term) error {
	for pause(ctx, 500*time.Millisecond) {
	}
	return nil
}

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
