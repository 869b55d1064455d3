package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/examples/internal/replicas"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
)

// settings are what a replica is told.
type settings struct {
	Replica string
	Nodes   []string
	TTL     time.Duration
	Listen  string // where to serve metrics
}

// kind says what an event is.
type kind string

const (
	kindListens kind = "listens" // metrics are served
	kindElected kind = "elected" // this replica leads the election "poller"
	kindEnded   kind = "ended"   // it no longer leads
)

// event is what a replica tells.
type event struct {
	Replica string
	Kind    kind
	Term    uint64 `json:",omitempty"`
	Detail  string `json:",omitempty"` // the address, or how the term ended
}

// closing bounds what is sent and served at the end.
const closing = 2 * time.Second

// serve is what a service does until ctx ends. It stops in the order in which nothing is cut off:
// jobs, leases and the leadership, then the Quorum, then telemetry, which so reports the end of all
// of them.
func serve(ctx context.Context, job settings, events *replicas.Reporter) (err error) {
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
	events.Report(event{Replica: job.Replica, Kind: kindListens, Detail: metrics.addr})

	jobs, err := startJobs(q, t.tenure, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, jobs.stop()) }()

	var work sync.WaitGroup
	defer work.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop() // the work too, if the election fails
	work.Go(func() { writeInvoices(ctx, q) })
	work.Go(func() { takeStock(ctx, q) })
	return lead(ctx, q, t.tenure, logger, job.Replica, events)
}

// poller is the election whose leader -kill-leader-after kills.
const poller = "poller"

// lead takes part in the election until ctx ends.
func lead(ctx context.Context, q *redlock.Quorum, tracer *tenureotel.Instrumentation, logger *slog.Logger, replica string, events *replicas.Reporter) error {
	e, err := elector.New(q, poller, elector.WithIdentity(replica), elector.WithTracer(tracer), elector.WithLogger(logger))
	if err != nil {
		return err
	}
	operator, err := admin.New(q, admin.WithActor(replica), admin.WithTracer(tracer), admin.WithLogger(logger))
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	changes := e.Changes(watching)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for c := range changes {
			if c.Kind == elector.Elected {
				events.Report(event{Replica: replica, Kind: kindElected, Term: c.Term})
			} else {
				events.Report(event{Replica: replica, Kind: kindEnded, Term: c.Term, Detail: string(c.Reason)})
			}
		}
	})
	err = e.Run(ctx, func(ctx context.Context, _ *elector.Term) error { return poll(ctx, operator) })
	stop() // what has happened is still reported
	watcher.Wait()
	return err
}

// poll is what only the leader does. Its context ends when it no longer leads. At times it needs
// the other side for itself, and pauses the job "sync" meanwhile, as an operator would: a pause
// that a killed leader leaves behind ends by itself.
func poll(ctx context.Context, operator *admin.Client) error {
	job := admin.Job("sync")
	for wait := time.Second; pause(ctx, wait); wait = 15 * time.Second {
		paused := admin.PauseOptions{Until: time.Now().Add(5 * time.Second), Reason: "a full poll"}
		if _, err := operator.Pause(ctx, job, paused); err != nil {
			continue // the next is another try; what went wrong is in the metrics
		}
		pause(ctx, 2*time.Second)
		// Should it fail, the pause ends by itself.
		_ = operator.Resume(ctx, job, "the poll is done")
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
