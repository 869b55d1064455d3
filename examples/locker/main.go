// Locker runs each tick of a gocron job on one of three replicas, with gocron's own scheduler and
// this project's Locker:
//
//	go run ./examples/locker
//
// It needs no server: five nodes run inside the process. The replicas run there too, each with its
// own Quorum, like separate processes. The job ticks every second for five seconds. The program
// fails if a tick ran twice.
//
// This wiring is the smallest change to a service. It does not repeat runs that a crash or an
// outage has lost, and a running job is not told when it loses its lease. examples/scheduler does
// more.
package main

import (
	"fmt"
	"log"
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

	var mu sync.Mutex
	runs := make(map[string]int) // by tick
	run := func(name string) {
		tick := time.Now().Truncate(time.Second).Format(time.TimeOnly)
		fmt.Println("tick", tick, "runs on", name)
		mu.Lock()
		defer mu.Unlock()
		if runs[tick]++; runs[tick] > 1 {
			log.Fatal("it ran twice")
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		s, err := replica(fleet.URLs(), name, run)
		if err != nil {
			log.Fatal(err)
		}
		s.Start()
		defer s.Shutdown()
	}
	time.Sleep(5 * time.Second)
}

// replica makes the scheduler that each process of a service has.
func replica(nodes []string, name string, run func(string)) (gocron.Scheduler, error) {
	q, err := redlock.Open(nodes, redlock.WithPrefix("example-locker"), redlock.WithTTL(3*time.Second), redlock.WithIdentity(name))
	if err != nil {
		return nil, err
	}
	// The hold must be longer than the replicas' clocks may differ plus the time of an attempt. It
	// must be shorter than the interval of the job.
	locker, err := scheduler.NewLocker(q, scheduler.WithMinHold(500*time.Millisecond), scheduler.WithTryTimeout(300*time.Millisecond))
	if err != nil {
		return nil, err
	}
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		return nil, err
	}
	_, err = s.NewJob(gocron.CronJob("* * * * * *", true), gocron.NewTask(run, name), gocron.WithName("report"))
	return s, err
}
