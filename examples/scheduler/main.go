// Scheduler runs each tick of a job once, on one of three replicas, and catches up on those that
// were missed:
//
//	go run ./examples/scheduler
//
// It needs no server: five nodes run inside the process, and so do the replicas, each with a Quorum
// of its own as if it were a process of its own. In the middle all replicas are stopped for three
// seconds. The ticks of that time are run afterwards, in order. The program exits with 1 if a tick
// was lost or ran twice.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
	"github.com/tenure-dev/tenure/scheduler"
)

func main() {
	fleet, err := redlocktest.New(5)
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()
	r := &report{runs: make(map[int64]int)}

	stop := start(fleet.URLs(), r)
	time.Sleep(4 * time.Second)
	fmt.Println("all replicas stop")
	stop()
	time.Sleep(3 * time.Second)
	fmt.Println("all replicas start")
	stop = start(fleet.URLs(), r)
	time.Sleep(4 * time.Second)
	stop()
	if err := r.check(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// start starts three replicas, and returns what stops them, one after the other.
func start(nodes []string, r *report) (stop func()) {
	var stops []func()
	for _, name := range []string{"a", "b", "c"} {
		stop, err := replica(nodes, name, r)
		if err != nil {
			log.Fatal(err)
		}
		stops = append(stops, stop)
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// replica is what each process of a service does.
func replica(nodes []string, name string, r *report) (stop func(), err error) {
	q, err := redlock.Open(nodes, redlock.WithPrefix("example-scheduler"), redlock.WithTTL(3*time.Second), redlock.WithIdentity(name))
	if err != nil {
		return nil, err
	}
	s, err := scheduler.New(q)
	if err != nil {
		return nil, err
	}
	_, err = s.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(r.run, name), gocron.WithName("report"),
		scheduler.WithCatchUp(time.Minute, scheduler.CatchUpAll))
	if err != nil {
		return nil, err
	}
	s.Start()
	return func() {
		if err := errors.Join(s.Shutdown(), q.Close()); err != nil {
			log.Print(err)
		}
	}, nil
}

// report is the work that is done on a schedule.
type report struct {
	mu   sync.Mutex
	runs map[int64]int // by tick, in seconds
}

// run is the task. Its context ends when its lease is lost.
func (r *report) run(ctx context.Context, replica string) error {
	run, _ := scheduler.RunFromContext(ctx)
	late := ""
	if time.Since(run.Due) > 500*time.Millisecond {
		late = ", late"
	}
	fmt.Printf("tick %s runs on %s, token %d%s\n", run.Due.Format(time.TimeOnly), replica, run.FencingToken(), late)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs[run.Due.Unix()]++
	return ctx.Err()
}

// check returns an error unless every tick from the first to the last ran once.
func (r *report) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first, last int64
	for tick, n := range r.runs {
		if n != 1 {
			return fmt.Errorf("a tick ran %d times", n)
		}
		if first == 0 || tick < first {
			first = tick
		}
		last = max(last, tick)
	}
	if lost := int(last-first+1) - len(r.runs); len(r.runs) == 0 || lost > 0 {
		return fmt.Errorf("%d ticks ran, %d were lost", len(r.runs), lost)
	}
	fmt.Printf("%d ticks, each ran once\n", len(r.runs))
	return nil
}
