package scheduler_test

import (
	"context"
	"errors"
	"fmt"
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
// to redlock.Open and needs nothing else.
func openExample() (q *redlock.Quorum, closeAll func()) {
	fleet, err := redlocktest.New(3)
	if err != nil {
		panic(err)
	}
	q, err = redlock.Open(fleet.URLs(), redlock.WithClientOption(fleet.ClientOption), redlock.WithMaxTTL(2*time.Minute))
	if err != nil {
		panic(err)
	}
	return q, func() {
		_ = q.Close()
		_ = fleet.Close()
	}
}

// A job that is due on two replicas at once runs on one of them.
func ExampleNewLocker() {
	q, closeAll := openExample()
	defer closeAll()

	ran := make(chan struct{}, 2)
	for range 2 { // each is a process of its own in real life, with its own Quorum
		locker, err := scheduler.NewLocker(q)
		if err != nil {
			fmt.Println(err)
			return
		}
		s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = s.NewJob(
			gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
			gocron.NewTask(func() { ran <- struct{}{} }),
			gocron.WithName("nightly-report"),
		)
		if err != nil {
			fmt.Println(err)
			return
		}
		s.Start()
		defer func() { _ = s.Shutdown() }()
	}

	<-ran
	select {
	case <-ran:
		fmt.Println("ran twice")
	case <-time.After(200 * time.Millisecond):
		fmt.Println("ran once")
	}
	// Output: ran once
}

// Lock is what gocron calls when a job is due; errors.Is tells why a tick was skipped, in
// gocron.AfterLockError for example.
func ExampleLocker_Lock() {
	q, closeAll := openExample()
	defer closeAll()
	locker, err := scheduler.NewLocker(q)
	if err != nil {
		fmt.Println(err)
		return
	}

	lock, err := locker.Lock(context.Background(), "nightly-report")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = lock.Unlock(context.Background()) }()

	_, err = locker.Lock(context.Background(), "nightly-report")
	fmt.Println("another replica has it:", errors.Is(err, redlock.ErrHeld))
	fmt.Println("too few nodes answered:", errors.Is(err, redlock.ErrNoQuorum))
	// Output:
	// another replica has it: true
	// too few nodes answered: false
}

// A job that is done within the minimum hold leaves its lease to run out, so that a replica that
// ticks a little later does not run the tick again.
func ExampleLock_Unlock() {
	q, closeAll := openExample()
	defer closeAll()
	locker, err := scheduler.NewLocker(q, scheduler.WithMinHold(2*time.Second))
	if err != nil {
		fmt.Println(err)
		return
	}

	lock, err := locker.Lock(context.Background(), "nightly-report")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("unlocked:", lock.Unlock(context.Background()))

	_, err = locker.Lock(context.Background(), "nightly-report")
	fmt.Println("a late replica is refused:", errors.Is(err, redlock.ErrHeld))
	// Output:
	// unlocked: <nil>
	// a late replica is refused: true
}

// tokenLocker wraps a Locker to take the lease of each run to where its task can find it.
type tokenLocker struct {
	*scheduler.Locker
	leases chan *redlock.Lease
}

func (l tokenLocker) Lock(ctx context.Context, name string) (gocron.Lock, error) {
	lock, err := l.Locker.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	l.leases <- lock.(*scheduler.Lock).Lease()
	return lock, nil
}

// The lease has the fencing token that protects what the job writes, and a context that ends when
// the lease is lost.
func ExampleLock_Lease() {
	q, closeAll := openExample()
	defer closeAll()
	plain, err := scheduler.NewLocker(q)
	if err != nil {
		fmt.Println(err)
		return
	}
	locker := tokenLocker{Locker: plain, leases: make(chan *redlock.Lease, 1)}

	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan struct{})
	_, err = s.NewJob(
		gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()),
		gocron.NewTask(func() {
			defer close(done)
			lease := <-locker.leases
			fmt.Println("key:", lease.Key())
			fmt.Println("fencing token for the database:", lease.FencingToken() > 0)
			fmt.Println("lost:", lease.Context().Err() != nil)
		}),
		gocron.WithName("nightly-report"),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	s.Start()
	<-done
	_ = s.Shutdown()
	// Output:
	// key: job/nightly-report
	// fencing token for the database: true
	// lost: false
}

// A job that runs every second needs a minimum hold below that.
func ExampleWithMinHold() {
	q, closeAll := openExample()
	defer closeAll()
	_, err := scheduler.NewLocker(q, scheduler.WithMinHold(500*time.Millisecond))
	fmt.Println(err)
	// Output: <nil>
}

// The minimum hold has to be below the TTL.
func ExampleWithTTL() {
	q, closeAll := openExample()
	defer closeAll()
	_, err := scheduler.NewLocker(q, scheduler.WithTTL(5*time.Second), scheduler.WithMinHold(time.Minute))
	fmt.Println(err)
	_, err = scheduler.NewLocker(q, scheduler.WithTTL(2*time.Minute), scheduler.WithMinHold(time.Minute))
	fmt.Println(err)
	// Output:
	// scheduler: WithMinHold: 1m0s is not below the TTL of 5s
	// <nil>
}

// Where nodes are near, an attempt may be given less time than the default.
func ExampleWithTryTimeout() {
	q, closeAll := openExample()
	defer closeAll()
	_, err := scheduler.NewLocker(q, scheduler.WithTryTimeout(200*time.Millisecond))
	fmt.Println(err)
	// Output: <nil>
}

// Two services on the same nodes may both have a job called "cleanup".
func ExampleWithKeyPrefix() {
	q, closeAll := openExample()
	defer closeAll()
	for _, service := range []string{"billing", "shipping"} {
		locker, err := scheduler.NewLocker(q, scheduler.WithKeyPrefix(service+"/job/"))
		if err != nil {
			fmt.Println(err)
			return
		}
		lock, err := locker.Lock(context.Background(), "cleanup")
		if err != nil {
			fmt.Println(err)
			return
		}
		defer func() { _ = lock.Unlock(context.Background()) }()
		fmt.Println(lock.(*scheduler.Lock).Lease().Key())
	}
	// Output:
	// billing/job/cleanup
	// shipping/job/cleanup
}

// At debug level a Locker also says which replica has a job.
func ExampleWithLogger() {
	q, closeAll := openExample()
	defer closeAll()
	logger := slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	_, err := scheduler.NewLocker(q, scheduler.WithLogger(logger))
	fmt.Println(err)
	// Output: <nil>
}

// An identity says which replica runs a job, in errors and to Quorum.Holder.
func ExampleWithLeaseOptions() {
	q, closeAll := openExample()
	defer closeAll()
	locker, err := scheduler.NewLocker(q, scheduler.WithLeaseOptions(redlock.WithIdentity("replica-a")))
	if err != nil {
		fmt.Println(err)
		return
	}
	lock, err := locker.Lock(context.Background(), "nightly-report")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = lock.Unlock(context.Background()) }()
	holder, err := q.Holder(context.Background(), "job/nightly-report")
	fmt.Println(holder.Identity, err)
	// Output: replica-a <nil>
}

// Options that cannot work are found when the Locker is made, and the error says which.
func ExampleOptionError() {
	q, closeAll := openExample()
	defer closeAll()
	_, err := scheduler.NewLocker(q, scheduler.WithTryTimeout(time.Microsecond))
	var invalid *scheduler.OptionError
	if errors.As(err, &invalid) {
		fmt.Println(invalid.Option)
		fmt.Println(invalid.Reason)
	}
	// Output:
	// WithTryTimeout
	// 1µs is below the minimum of 10ms
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
	_ = gocron.WithEventListeners(gocron.AfterLockError(listener)) // an option of NewJob, or of WithGlobalJobOptions

	listener(uuid.New(), "report", &scheduler.SkipError{Job: "report", Reason: scheduler.SkipHeld, By: "replica-2"})
	listener(uuid.New(), "report", &scheduler.SkipError{Job: "report", Reason: scheduler.SkipNoQuorum, Err: redlock.ErrNoQuorum})
	// Output: attention: scheduler: job "report" is skipped: no_quorum: redlock: no quorum of nodes
}
