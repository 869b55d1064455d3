// Scheduler runs each tick of a job once, on one of three replicas, and runs missed ticks late:
//
//	go run ./examples/scheduler
//
// It needs no server: five nodes run inside the process. The replicas run there too, each with its
// own Quorum, like separate processes. After four seconds all replicas are stopped for three
// seconds. The ticks of that time are run afterwards, in order. The program fails if a tick was
// lost or ran twice.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"slices"
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
	r.check()
}

// start starts three replicas. The returned function stops them one after the other.
func start(nodes []string, r *report) (stop func()) {
	stop = func() {}
	for _, name := range []string{"a", "b", "c"} {
		one, err := replica(nodes, name, r)
		if err != nil {
			log.Fatal(err)
		}
		others := stop
		stop = func() { others(); one() }
	}
	return stop
}

// replica starts what each process of a service runs.
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

// report is the work of the job, and records its runs.
type report struct {
	mu   sync.Mutex
	runs map[int64]int // runs of each tick, by Unix second
}

// run is the task of the job. Its context ends when the lease is lost.
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

// check ends the program with an error unless every tick from the first to the last ran once.
func (r *report) check() {
	r.mu.Lock()
	defer r.mu.Unlock()
	ticks := slices.Sorted(maps.Keys(r.runs))
	for i, tick := range ticks {
		if r.runs[tick] != 1 || tick != ticks[0]+int64(i) {
			log.Fatalf("a tick was lost, or ran %d times", r.runs[tick])
		}
	}
	fmt.Printf("%d ticks, each ran once\n", len(ticks))
}
