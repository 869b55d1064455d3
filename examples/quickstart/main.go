// Quickstart runs a job every second, on one of three replicas of a service:
//
//	go run ./examples/quickstart
//
// The function serve is the service: take it from here. It opens a quorum of nodes, makes a
// scheduler on it, adds a job and runs it until it is told to stop. All replicas do the same.
//
// The rest shows that it works. The program needs no server: five nodes run inside the first
// process, which starts itself once more for each replica. It kills the leader in the middle of a
// run, starts it again, and stops everything in order. It exits with 1 if a tick ran twice or was
// lost. A tick whose run was cut short is run again, and that does not count as twice. The story is
// in demo.go.
//
//	-mode elector   the replicas elect a leader, which runs every tick (the default)
//	-mode locker    each tick has a lease, and the replica that gets it runs the tick
//	-web ADDRESS    a page on which you kill, freeze and partition things, until you interrupt it
//	-nodes URLS     real servers, which have to be running: valkey://127.0.0.1:7001,valkey://...
//
// The environment variable TENURE_NODES may name the servers instead, which keeps passwords out of
// the list of processes. The program prints no password.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/examples/internal/demo/processes"
	"github.com/tenure-dev/tenure/examples/internal/replicas"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

// settings are what a service reads from its configuration.
type settings struct {
	Replica string        // the name of this replica
	Nodes   []string      // the URLs of the nodes, the same on every replica
	TTL     time.Duration // how long the others wait for a replica that died
	Elect   bool          // let a leader run every tick
	Job     string        // its name, the same on every replica
}

// serve is the service. It returns when ctx ends, and stops in this order: the job, then the
// Quorum.
func serve(ctx context.Context, cfg settings, events *replicas.Reporter) (err error) {
	q, err := redlock.Open(cfg.Nodes,
		redlock.WithPrefix("quickstart"), // the name of the service
		redlock.WithTTL(cfg.TTL),
		redlock.WithIdentity(cfg.Replica))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()

	var options []scheduler.Option
	if cfg.Elect {
		options = append(options, scheduler.WithElection(cfg.Job))
	}
	s, err := scheduler.New(q, options...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Shutdown()) }()

	task := func(ctx context.Context) { // ctx ends when the lease is lost or the scheduler stops
		run, _ := scheduler.RunFromContext(ctx)
		events.Report(event{At: time.Now(), Tick: run.Due, Attempt: run.Attempt, Token: run.FencingToken()})
		select {
		case <-time.After(work): // here your job does its work
		case <-ctx.Done():
		}
	}
	_, err = s.NewJob(
		gocron.CronJob("* * * * * *", true), // every second
		gocron.NewTask(task),
		gocron.WithName(cfg.Job),
		// Run ticks late that no replica could run, such as those between a crash and the
		// take-over.
		scheduler.WithCatchUp(time.Hour, scheduler.CatchUpAll),
		// Run a tick again whose run was cut short, as by a crash. The default is not to.
		scheduler.WithDelivery(scheduler.AtLeastOnce))
	if err != nil {
		return err
	}
	s.Start()
	<-ctx.Done()
	return nil
}

func main() {
	if processes.IsReplica() { // as it does for the page, see web.go
		os.Exit(processes.Main())
	}
	if replicas.IsReplica() { // this program has started itself
		slog.SetLogLoggerLevel(slog.LevelError) // a kill makes warnings, which would break up the story
		os.Exit(replicas.Main(serve))
	}
	os.Exit(run(os.Args[1:], os.Getenv(replicas.NodesVariable)))
}
