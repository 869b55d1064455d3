// Locker runs a gocron job on one of three replicas at a time, with gocron's own scheduler and this
// project's Locker:
//
//	go run ./examples/locker
//
// It needs no server: five nodes run inside the process, and so do the replicas, each with a Quorum
// of its own as if it were a process of its own. The job ticks every second for five seconds. The
// program fails if a tick ran twice.
//
// This is the least that a service has to change. It does not run again what a crash or an outage
// has lost, and a running job does not hear that its lease is gone: examples/scheduler does more.
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

// replica is what each process of a service does.
func replica(nodes []string, name string, run func(string)) (gocron.Scheduler, error) {
	q, err := redlock.Open(nodes, redlock.WithPrefix("example-locker"), redlock.WithTTL(3*time.Second), redlock.WithIdentity(name))
	if err != nil {
		return nil, err
	}
	// The hold has to be longer than the clocks of the replicas differ and an attempt may take, and
	// shorter than the interval of the job.
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
