package main

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/elector"
	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// settings has what a replica needs to know when it starts.
type settings struct {
	Replica string
	Nodes   []string
	TTL     time.Duration
	Listen  string // address at which to serve metrics
}

// The kinds of event.
const (
	elected = "elected" // this replica leads the election "poller"
	ended   = "ended"   // the replica no longer leads, for the reason in Detail
)

// event is what a replica reports of itself.
type event struct{ Kind, Detail string }

// closing limits how long the replica sends and serves telemetry at the end, and how long the
// schedulers wait for runs.
const closing = 2 * time.Second

// serve runs the service until ctx ends. It stops the parts in an order in which each can still use
// those that it needs: first jobs, leases and leadership, then the Quorum, and last the telemetry,
// which thus reports the end of the others.
func serve(ctx context.Context, s settings, report func(any)) (err error) {
	logger := slog.New(tenureotel.NewLogHandler(slog.NewJSONHandler(os.Stderr, nil))).With("replica", s.Replica)
	t, err := startTelemetry(ctx, s)
	if err != nil {
		return err
	}
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
		defer cancel()
		err = errors.Join(err, t.close(limited))
	}()
	q, err := redlock.Open(s.Nodes, redlock.WithPrefix("observability"), redlock.WithTTL(s.TTL), redlock.WithIdentity(s.Replica),
		redlock.WithTracer(t.tenure), redlock.WithLogger(logger))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()

	// In one scheduler the replicas share the ticks. In the other the leader of an election runs
	// the job. Each job is expected to succeed at least once a minute.
	for _, jobs := range []map[string]job{shared, led} {
		options := []scheduler.Option{
			scheduler.WithTracer(t.tenure.Scheduler()), scheduler.WithLogger(logger), scheduler.WithLocation(time.UTC),
			scheduler.WithStopTimeout(closing), scheduler.WithJobOptions(scheduler.WithSucceedWithin(time.Minute)),
		}
		if jobs["digest"].run != nil {
			options = append(options, scheduler.WithElection("jobs"))
		}
		sched, err := scheduler.New(q, options...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sched.Shutdown()) }()
		for name, j := range jobs {
			if _, err := sched.NewJob(gocron.CronJob(j.cron, true), gocron.NewTask(j.run), append(j.with, gocron.WithName(name))...); err != nil {
				return err
			}
		}
		sched.Start()
	}

	var work sync.WaitGroup
	defer work.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop() // ends the work too, if the election fails
	work.Go(func() { writeInvoices(ctx, q) })
	work.Go(func() { takeStock(ctx, q) })
	return lead(ctx, q, report)
}

// job is a job with its schedule, which has seconds.
type job struct {
	cron string
	run  func(context.Context) error
	with []gocron.JobOption
}

// catchUp makes replicas run missed ticks late, and run a tick again if its replica was killed.
var catchUp = []gocron.JobOption{scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll), scheduler.WithDelivery(scheduler.AtLeastOnce)}

var (
	shared = map[string]job{
		"heartbeat": {cron: "* * * * * *", run: takes(20 * time.Millisecond)},
		"import":    {cron: "*/10 * * * * *", run: takes(4 * time.Second)}, // the lease is extended during the run
		"sync":      {cron: "*/2 * * * * *", run: syncs},
		"invoices":  {cron: "*/3 * * * * *", run: takes(200 * time.Millisecond), with: catchUp},
	}
	led = map[string]job{"digest": {cron: "*/5 * * * * *", run: takes(time.Second)}}
)

// takes returns a task that takes the time d. The task ends early with its context: when the lease
// is lost, or the process stops.
func takes(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		if !pause(ctx, d) {
			return context.Cause(ctx)
		}
		return nil
	}
}

// syncs fails at every fifth tick, like a job that depends on another service.
func syncs(ctx context.Context) error {
	if run, _ := scheduler.RunFromContext(ctx); run.Due.Unix()/2%5 == 0 {
		return errors.New("observability: the other side does not answer")
	}
	return takes(100 * time.Millisecond)(ctx)
}

// poller is the name of the election whose leader -kill-leader-after kills.
const poller = "poller"

// lead takes part in the election until ctx ends, and reports its changes.
func lead(ctx context.Context, q *redlock.Quorum, report func(any)) error {
	e, err := elector.New(q, poller)
	if err != nil {
		return err
	}
	operator, err := admin.New(q)
	if err != nil {
		return err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watcher sync.WaitGroup
	changes := e.Changes(watching)
	watcher.Go(func() {
		for c := range changes {
			if c.Kind == elector.Elected {
				report(event{elected, "term " + strconv.FormatUint(c.Term, 10)})
			} else {
				report(event{ended, string(c.Reason)})
			}
		}
	})
	err = e.Run(ctx, func(ctx context.Context, _ *elector.Term) error { return poll(ctx, operator) })
	stop() // changes so far are still reported
	watcher.Wait()
	return err
}

// poll does the work of the leader. Its context ends when the replica no longer leads. From time to
// time it needs the other service for itself, and pauses the job "sync" for that time, as an
// operator would. If the leader is killed, the pause ends by itself.
func poll(ctx context.Context, operator *admin.Client) error {
	job := admin.Job("sync")
	for wait := time.Second; pause(ctx, wait); wait = 15 * time.Second {
		paused := admin.PauseOptions{Until: time.Now().Add(5 * time.Second), Reason: "a full poll", Force: true}
		if _, err := operator.Pause(ctx, job, paused); err != nil {
			continue // the next round tries again; the metrics show the error
		}
		pause(ctx, 2*time.Second)
		_ = operator.Resume(ctx, job, "the poll is done")
	}
	return nil
}

const invoicePrefix = "invoice/"

// writeInvoices tries to write the invoice of each second. All replicas try, and one gets the
// lease. Errors are in the metrics and the traces, and the next invoice is another attempt.
func writeInvoices(ctx context.Context, q *redlock.Quorum) {
	for pause(ctx, between(300*time.Millisecond, 700*time.Millisecond)) {
		lease, err := q.TryAcquire(ctx, invoicePrefix+strconv.FormatInt(time.Now().Unix(), 10))
		if err == nil {
			hold(ctx, lease, between(100*time.Millisecond, 600*time.Millisecond))
		}
	}
}

// takeStock waits for the lease "stock", again and again.
func takeStock(ctx context.Context, q *redlock.Quorum) {
	for pause(ctx, between(0, 500*time.Millisecond)) {
		lease, err := q.Acquire(ctx, "stock")
		if err == nil {
			hold(ctx, lease, between(50*time.Millisecond, 300*time.Millisecond))
		}
	}
}

// hold works under a lease until the work is done or the lease is over.
func hold(ctx context.Context, lease *redlock.Lease, work time.Duration) {
	pause(lease.Context(), work)
	// A lost lease cannot be released. It is over, and the loss has been reported.
	_ = lease.Release(context.WithoutCancel(ctx))
}

func between(least, most time.Duration) time.Duration { return least + rand.N(most-least) }

// pause waits for the time d. It returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
