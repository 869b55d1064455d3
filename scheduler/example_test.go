package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

// openExample opens a Quorum on nodes inside this process. A service gives the URLs of its servers
// to redlock.Open and needs nothing else. These nodes have the time that they need on a busy
// machine.
func openExample() (q *redlock.Quorum, closeAll func()) {
	fleet, err := redlocktest.New(3)
	if err != nil {
		log.Fatal(err)
	}
	q, err = redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithMaxTTL(2*time.Minute),
		redlock.WithTTL(time.Minute), redlock.WithNodeTimeout(15*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	return q, func() {
		_ = q.Close()
		_ = fleet.Close()
	}
}

// noon is a zone in which it is noon now: no job here is due in the night meanwhile.
func noon() *time.Location {
	location, err := time.LoadLocation(fmt.Sprintf("Etc/GMT%+d", time.Now().UTC().Hour()-12))
	if err != nil {
		log.Fatal(err)
	}
	return location
}

// newExample makes a Scheduler that logs warnings to standard error.
func newExample(q *redlock.Quorum) *scheduler.Scheduler {
	s, err := scheduler.New(q, scheduler.WithLocation(noon()), scheduler.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))))
	if err != nil {
		log.Fatal(err)
	}
	return s
}

// printRuns prints how often a job of two replicas has run.
func printRuns(ran <-chan struct{}) {
	<-ran
	select {
	case <-ran:
		fmt.Println("ran twice")
	case <-time.After(200 * time.Millisecond):
		fmt.Println("ran once")
	}
}

// A job that two replicas have runs once a tick, on one of them.
func ExampleNew() {
	q, closeAll := openExample()
	defer closeAll()
	ran := make(chan struct{}, 2)
	for range 2 { // each is a process of its own in real life, with its own Quorum
		s, err := scheduler.New(q, scheduler.WithLocation(time.UTC), scheduler.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = s.Shutdown() }()
		_, err = s.NewJob(
			gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
			gocron.NewTask(func() { ran <- struct{}{} }),
			gocron.WithName("nightly-report"),
			scheduler.WithCatchUp(time.Hour, scheduler.CatchUpLatest),
		)
		if err != nil {
			log.Fatal(err)
		}
		s.Start()
	}
	printRuns(ran)
	// Output: ran once
}

// A task that takes a context finds its run, whose fencing token protects what it writes.
func ExampleRunFromContext() {
	q, closeAll := openExample()
	defer closeAll()
	s := newExample(q)
	defer func() { _ = s.Shutdown() }()
	done := make(chan struct{})
	_, err := s.NewJob(
		gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
		gocron.NewTask(func(ctx context.Context) error {
			defer close(done)
			run, ok := scheduler.RunFromContext(ctx)
			fmt.Println(ok, run.Job, run.Attempt, run.Why)
			fmt.Println("fencing token for the database:", run.FencingToken() > 0)
			run.Report("1,204 invoices")
			return ctx.Err() // ends when the lease is lost, or the Scheduler stops
		}),
		gocron.WithName("invoices"),
	)
	if err != nil {
		log.Fatal(err)
	}
	s.Start()
	<-done
	// Output:
	// true invoices 1 on_time
	// fencing token for the database: true
}

// Options of this package stand among gocron's.
func ExampleScheduler_NewJob() {
	q, closeAll := openExample()
	defer closeAll()
	s := newExample(q)
	defer func() { _ = s.Shutdown() }()
	_, err := s.NewJob(
		gocron.CronJob("30 2 * * *", false),
		gocron.NewTask(func(ctx context.Context) error { return ctx.Err() }),
		gocron.WithName("nightly-report"),
		scheduler.WithCatchUp(6*time.Hour, scheduler.CatchUpLatest), // late, if nobody could at 2:30
		scheduler.WithDelivery(scheduler.AtLeastOnce),               // again, if its replica is killed
		scheduler.WithRetry(3, time.Minute),                         // again, if it fails
		scheduler.WithSucceedWithin(26*time.Hour),                   // overdue after that
	)
	fmt.Println(err)
	// Output: <nil>
}

// gocron calls AfterLockError for every tick on each replica that does not run it. Most of the time
// nothing is wrong.
func ExampleSkipError_Expected() {
	listener := func(_ uuid.UUID, name string, err error) {
		var skip *scheduler.SkipError
		if errors.As(err, &skip) && skip.Expected() {
			return // another replica runs the tick, for example
		}
		fmt.Println("attention:", err)
	}
	_ = scheduler.WithJobOptions(gocron.WithEventListeners(gocron.AfterLockError(listener))) // or an option of NewJob
	listener(uuid.New(), "report", &scheduler.SkipError{Job: "report", Reason: scheduler.SkipHeld, By: "replica-2"})
	listener(uuid.New(), "report", &scheduler.SkipError{Job: "report", Reason: scheduler.SkipNoQuorum, Err: redlock.ErrNoQuorum})
	// Output: attention: scheduler: job "report" is skipped: no_quorum: redlock: no quorum of nodes
}

// RunNow begins a run at once, and says if it cannot.
func ExampleScheduler_Jobs() {
	q, closeAll := openExample()
	defer closeAll()
	s := newExample(q)
	defer func() { _ = s.Shutdown() }()
	done := make(chan struct{})
	_, err := s.NewJob(gocron.CronJob("30 2 * * *", false), gocron.NewTask(func() { close(done) }), gocron.WithName("nightly-report"))
	if err != nil {
		log.Fatal(err)
	}
	for _, job := range s.Jobs() {
		fmt.Println(job.RunNow())
	}
	s.Start()
	for _, job := range s.Jobs() {
		fmt.Println(job.RunNow())
	}
	<-done
	// Output:
	// scheduler: job "nightly-report" is skipped: stopped: not running: call Start, or see which of StopJobs and Shutdown has stopped it: gocron: Job: RunNow: scheduler unreachable
	// <nil>
}

// Options that cannot work are found at once, and the error says which.
func ExampleOptionError() {
	q, closeAll := openExample()
	defer closeAll()
	s := newExample(q)
	defer func() { _ = s.Shutdown() }()
	_, err := s.NewJob(gocron.CronJob("30 2 * * *", false), gocron.NewTask(func() {}), gocron.WithName("report"), scheduler.WithRetry(0, time.Second))
	var invalid *scheduler.OptionError
	if errors.As(err, &invalid) {
		fmt.Println(invalid.Option)
		fmt.Println(invalid.Reason)
	}
	// Output:
	// WithRetry
	// 0 retries are not 1 to 100
}

// A Locker is for gocron's own scheduler: a job that is due on two replicas at once runs on one of
// them.
func ExampleNewLocker() {
	q, closeAll := openExample()
	defer closeAll()
	ran := make(chan struct{}, 2)
	for range 2 { // each is a process of its own in real life, with its own Quorum
		locker, err := scheduler.NewLocker(q, scheduler.WithMinHold(30*time.Second))
		if err != nil {
			log.Fatal(err)
		}
		s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
		if err != nil {
			log.Fatal(err)
		}
		defer func() { _ = s.Shutdown() }()
		_, err = s.NewJob(
			gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
			gocron.NewTask(func() { ran <- struct{}{} }),
			gocron.WithName("nightly-report"),
		)
		if err != nil {
			log.Fatal(err)
		}
		s.Start()
	}
	printRuns(ran)
	// Output: ran once
}

// Lock is what gocron calls when a job is due; errors.Is tells why a tick was skipped, in
// gocron.AfterLockError for example. A job that is done within the minimum hold leaves its lease to
// run out, so that a replica that ticks a little later does not run the tick again.
func ExampleLocker_Lock() {
	q, closeAll := openExample()
	defer closeAll()
	locker, err := scheduler.NewLocker(q, scheduler.WithMinHold(30*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	lock, err := locker.Lock(context.Background(), "nightly-report")
	if err != nil {
		log.Fatal(err)
	}
	lease := lock.(*scheduler.Lock).Lease()
	fmt.Println("key:", lease.Key())
	fmt.Println("fencing token for the database:", lease.FencingToken() > 0)
	fmt.Println("unlocked:", lock.Unlock(context.Background()))
	_, err = locker.Lock(context.Background(), "nightly-report")
	fmt.Println("another replica has it:", errors.Is(err, redlock.ErrHeld))
	fmt.Println("too few nodes answered:", errors.Is(err, redlock.ErrNoQuorum))
	// Output:
	// key: job/nightly-report
	// fencing token for the database: true
	// unlocked: <nil>
	// another replica has it: true
	// too few nodes answered: false
}
