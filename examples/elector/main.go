// Elector elects one of three replicas. The leader does work that only one replica may do, and runs
// gocron jobs, with gocron's own scheduler and this project's Elector:
//
//	go run ./examples/elector
//
// It needs no server: five nodes run inside the process. The replicas run there too, each with its
// own Quorum, like separate processes. The leader stops, as a process does in a deployment, and
// another replica takes over. The program fails if no replica takes over.
//
// With this wiring, ticks that are due while there is no leader are lost: examples/scheduler runs
// them late.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
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
	leaders, stops := make(chan string), make(map[string]func())
	for _, name := range []string{"a", "b", "c"} {
		if stops[name], err = replica(fleet.URLs(), name, leaders); err != nil {
			log.Fatal(err)
		}
	}
	for range stops {
		select {
		case leader := <-leaders:
			time.Sleep(2 * time.Second)
			fmt.Println(leader, "stops")
			stops[leader]()
		case <-time.After(time.Minute):
			log.Fatal("nobody took over")
		}
	}
}

// replica starts what each process of a service runs. The returned function stops it in order:
// first the jobs, then the leadership, then the connections.
func replica(nodes []string, name string, leaders chan<- string) (stop func(), err error) {
	q, err := redlock.Open(nodes, redlock.WithPrefix("example-elector"), redlock.WithTTL(3*time.Second), redlock.WithIdentity(name))
	if err != nil {
		return nil, err
	}
	e, err := elector.New(q, "jobs")
	if err != nil {
		return nil, err
	}
	// Do not use gocron.WithDistributedLocker too: gocron ignores its lockers when it has an
	// elector.
	s, err := gocron.NewScheduler(gocron.WithDistributedElector(e))
	if err != nil {
		return nil, err
	}
	run := func() { fmt.Println("tick", time.Now().Truncate(time.Second).Format(time.TimeOnly), "runs on", name) }
	if _, err = s.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(run), gocron.WithName("report")); err != nil {
		return nil, err
	}
	s.Start()
	ctx, resign := context.WithCancel(context.Background())
	left := make(chan error, 1)
	go func() {
		left <- e.Run(ctx, func(ctx context.Context, term *elector.Term) error { // ctx ends with the term
			fmt.Println(name, "leads, term", term.Number())
			leaders <- name
			<-ctx.Done() // here is the work that only one replica may do
			return nil
		})
	}()
	return func() {
		err := s.Shutdown()
		resign()
		if err := errors.Join(err, <-left, q.Close()); err != nil {
			log.Print(err)
		}
	}, nil
}
