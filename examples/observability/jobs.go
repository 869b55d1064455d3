package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/go-co-op/gocron/v2"

	tenureotel "github.com/tenure-dev/tenure/otel"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// jobs are the schedulers of a replica: one whose ticks the replicas share, and one whose jobs the
// leader of an election runs.
type jobs struct {
	shared, led *scheduler.Scheduler
}

// job is what is run on a schedule.
type job struct {
	name string
	cron string // with seconds
	run  func(context.Context) error
	with []gocron.JobOption
}

// catchUp has ticks run late that nobody ran, the one whose replica was killed included.
var catchUp = []gocron.JobOption{scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll), scheduler.WithDelivery(scheduler.AtLeastOnce)}

var (
	sharedJobs = []job{
		{name: "heartbeat", cron: "* * * * * *", run: takes(20 * time.Millisecond)},
		{name: "import", cron: "*/10 * * * * *", run: takes(4 * time.Second)}, // its lease is extended meanwhile
		{name: "sync", cron: "*/2 * * * * *", run: syncs},
		{name: "invoices", cron: "*/3 * * * * *", run: takes(200 * time.Millisecond), with: catchUp},
	}
	ledJobs = []job{
		{name: "digest", cron: "*/5 * * * * *", run: takes(time.Second)},
	}
)

// startJobs starts the schedulers. The tracer sees runs, skipped ticks, and the election.
func startJobs(q *redlock.Quorum, tracer *tenureotel.Instrumentation, logger *slog.Logger) (*jobs, error) {
	shared, err := newScheduler(q, tracer, logger, sharedJobs)
	if err != nil {
		return nil, err
	}
	led, err := newScheduler(q, tracer, logger, ledJobs, scheduler.WithElection("jobs"))
	if err != nil {
		return nil, errors.Join(err, shared.Shutdown())
	}
	shared.Start()
	led.Start()
	return &jobs{shared: shared, led: led}, nil
}

// newScheduler makes one all of whose jobs are to succeed within a minute.
func newScheduler(q *redlock.Quorum, tracer *tenureotel.Instrumentation, logger *slog.Logger, list []job, opts ...scheduler.Option) (*scheduler.Scheduler, error) {
	s, err := scheduler.New(q, append(opts, scheduler.WithTracer(tracer.Scheduler()), scheduler.WithLogger(logger),
		scheduler.WithLocation(time.UTC), scheduler.WithStopTimeout(closing), scheduler.WithJobOptions(scheduler.WithSucceedWithin(time.Minute)))...)
	if err != nil {
		return nil, err
	}
	for _, j := range list {
		if _, err := s.NewJob(gocron.CronJob(j.cron, true), gocron.NewTask(j.run), append(j.with, gocron.WithName(j.name))...); err != nil {
			return nil, errors.Join(err, s.Shutdown())
		}
	}
	return s, nil
}

// stop ends the jobs, and then the leadership.
func (j *jobs) stop() error { return errors.Join(j.led.Shutdown(), j.shared.Shutdown()) }

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

var errUnavailable = errors.New("observability: the other side does not answer")

// syncs fails at every fifth of its ticks, as what depends on others does.
func syncs(ctx context.Context) error {
	run, _ := scheduler.RunFromContext(ctx)
	if run.Due.Unix()/2%5 == 0 {
		return errUnavailable
	}
	return takes(100 * time.Millisecond)(ctx)
}
