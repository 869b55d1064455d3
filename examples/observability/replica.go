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

// settings are what a replica is told.
type settings struct {
	Replica string
	Nodes   []string
	TTL     time.Duration
	Listen  string // where to serve metrics
}

// The kinds of event.
const (
	listens = "listens" // metrics are served at Detail
	elected = "elected" // this replica leads the election "poller"
	ended   = "ended"   // it no longer leads, for the reason in Detail
)

// event is what a replica tells.
type event struct{ Kind, Detail string }

// closing bounds what is sent and served at the end.
const closing = 2 * time.Second

// serve is what a service does until ctx ends. It stops in the order in which nothing is cut off:
// jobs, leases and the leadership, then the Quorum, then telemetry, which so reports the end of all
// of them.
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
	report(event{listens, t.address})

	// One scheduler whose ticks the replicas share, and one whose job the leader of an election
	// runs. All jobs are to succeed within a minute.
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
	defer stop() // the work too, if the election fails
	work.Go(func() { writeInvoices(ctx, q) })
	work.Go(func() { takeStock(ctx, q) })
	return lead(ctx, q, report)
}

// job is what is run on a schedule, with seconds.
type job struct {
	cron string
	run  func(context.Context) error
	with []gocron.JobOption
}

// catchUp has ticks run late that nobody ran, the one whose replica was killed included.
var catchUp = []gocron.JobOption{scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll), scheduler.WithDelivery(scheduler.AtLeastOnce)}

var (
	shared = map[string]job{
		"heartbeat": {cron: "* * * * * *", run: takes(20 * time.Millisecond)},
		"import":    {cron: "*/10 * * * * *", run: takes(4 * time.Second)}, // its lease is extended meanwhile
		"sync":      {cron: "*/2 * * * * *", run: syncs},
		"invoices":  {cron: "*/3 * * * * *", run: takes(200 * time.Millisecond), with: catchUp},
	}
	led = map[string]job{"digest": {cron: "*/5 * * * * *", run: takes(time.Second)}}
)

// takes is work of that length. It ends early with its context: when the lease is lost, or the
// process stops.
func takes(d time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		if !pause(ctx, d) {
			return context.Cause(ctx)
		}
		return nil
	}
}

// syncs fails at every fifth of its ticks, as what depends on others does.
func syncs(ctx context.Context) error {
	if run, _ := scheduler.RunFromContext(ctx); run.Due.Unix()/2%5 == 0 {
		return errors.New("observability: the other side does not answer")
	}
	return takes(100 * time.Millisecond)(ctx)
}

// poller is the election whose leader -kill-leader-after kills.
const poller = "poller"

// lead takes part in the election until ctx ends.
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
		paused := admin.PauseOptions{Until: time.Now().Add(5 * time.Second), Reason: "a full poll", Force: true}
		if _, err := operator.Pause(ctx, job, paused); err != nil {
			continue // the next is another try; what went wrong is in the metrics
		}
		pause(ctx, 2*time.Second)
		_ = operator.Resume(ctx, job, "the poll is done")
	}
	return nil
}

const invoicePrefix = "invoice/"

// writeInvoices tries to write the invoice of each second, which all replicas want and one gets.
// What goes wrong is in the metrics and the traces; the next one is another try.
func writeInvoices(ctx context.Context, q *redlock.Quorum) {
	for pause(ctx, between(300*time.Millisecond, 700*time.Millisecond)) {
		lease, err := q.TryAcquire(ctx, invoicePrefix+strconv.FormatInt(time.Now().Unix(), 10))
		if err == nil {
			hold(ctx, lease, between(100*time.Millisecond, 600*time.Millisecond))
		}
	}
}

// takeStock waits for its turn, again and again.
func takeStock(ctx context.Context, q *redlock.Quorum) {
	for pause(ctx, between(0, 500*time.Millisecond)) {
		lease, err := q.Acquire(ctx, "stock")
		if err == nil {
			hold(ctx, lease, between(50*time.Millisecond, 300*time.Millisecond))
		}
	}
}

// hold works under a lease until the work is done or the lease is over, whichever is first.
func hold(ctx context.Context, lease *redlock.Lease, work time.Duration) {
	pause(lease.Context(), work)
	// A lease that was lost cannot be released: it is over already, and reported.
	_ = lease.Release(context.WithoutCancel(ctx))
}

func between(least, most time.Duration) time.Duration { return least + rand.N(most-least) }

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
