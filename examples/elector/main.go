// Elector runs gocron jobs on the leader of three replicas, with gocron's own scheduler and this
// project's Elector:
//
//	go run ./examples/elector
//
// It needs no server: five nodes run inside the process, and so do the replicas, each with a Quorum
// of its own as if it were a process of its own. After three seconds the leader resigns, as a
// process does that is stopped, and another one goes on. The program exits with 1 if nobody took
// over.
//
// Ticks that come while nobody leads are lost with this wiring: examples/scheduler does more.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/redlock/redlocktest"
)

func main() {
	fleet, err := redlocktest.New(5)
	if err != nil {
		log.Fatal(err)
	}
	defer fleet.Close()

	var mu sync.Mutex
	leaders := make(map[string]bool)
	var stops []func()
	var electors []*elector.Elector
	for _, name := range []string{"a", "b", "c"} {
		e, stop, err := replica(fleet.URLs(), name, func() {
			fmt.Println("tick", time.Now().Truncate(time.Second).Format(time.TimeOnly), "runs on", name)
			mu.Lock()
			defer mu.Unlock()
			leaders[name] = true
		})
		if err != nil {
			log.Fatal(err)
		}
		electors, stops = append(electors, e), append(stops, stop)
	}
	time.Sleep(3 * time.Second)
	for i, e := range electors {
		if e.IsLeader(context.Background()) == nil {
			fmt.Println(e.Identity(), "stops")
			stops[i]()
			stops[i] = func() {}
			break
		}
	}
	time.Sleep(3 * time.Second)
	for _, stop := range stops {
		stop()
	}
	mu.Lock()
	defer mu.Unlock()
	if len(leaders) < 2 { // those that are stopped one after the other may have led, too
		fmt.Println("nobody took over")
		os.Exit(1)
	}
}

// replica is what each process of a service does. The function that it returns stops it in order:
// first the jobs, then the leadership, then the connections.
func replica(nodes []string, name string, run func()) (*elector.Elector, func(), error) {
	q, err := redlock.Open(nodes, redlock.WithPrefix("example-elector"), redlock.WithTTL(3*time.Second), redlock.WithIdentity(name))
	if err != nil {
		return nil, nil, err
	}
	e, err := elector.New(q, "jobs")
	if err != nil {
		return nil, nil, err
	}
	// Not together with gocron.WithDistributedLocker: gocron ignores its lockers when it has an
	// elector.
	s, err := gocron.NewScheduler(gocron.WithDistributedElector(e))
	if err != nil {
		return nil, nil, err
	}
	_, err = s.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(run), gocron.WithName("report"))
	if err != nil {
		return nil, nil, err
	}
	s.Start()
	ctx, resign := context.WithCancel(context.Background())
	left := make(chan struct{})
	go func() {
		defer close(left)
		if err := e.Run(ctx, nil); err != nil {
			log.Print(err)
		}
	}()
	return e, func() {
		if err := s.Shutdown(); err != nil {
			log.Print(err)
		}
		resign()
		<-left
		if err := q.Close(); err != nil {
			log.Print(err)
		}
	}, nil
}
