// Quickstart runs a job every second, on one of three replicas of a service:
//
//	go run ./examples/quickstart
//
// The function serve is the service: copy it from here. It opens a quorum of nodes, makes a
// scheduler on it, adds a job and runs the job until it is told to stop. All replicas do the same.
//
// The rest shows that it works. The program needs no server: five nodes run inside the first
// process, which starts itself again for each replica. It kills the replica that runs the job in
// the middle of a run, starts it again, and stops everything in order. It exits with 1 if a tick
// ran twice or was lost. A tick whose run was cut short is run again, which does not count as
// twice.
//
//	-duration 10m    to look at it meanwhile, with the command that it prints
//	-nodes URLS      real servers: valkey://127.0.0.1:7001,valkey://... (or TENURE_NODES)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/scheduler"
)

const (
	prefix = "quickstart"           // the name of the service on the nodes
	ttl    = 3 * time.Second        // how long the others wait for a replica that died
	work   = 300 * time.Millisecond // how long a run takes: long enough to be killed in the middle
)

// settings has what a service reads from its configuration.
type settings struct {
	Replica string   // the name of this replica
	Nodes   []string // the URLs of the nodes, the same on every replica
	Job     string   // the name of the job, the same on every replica
}

// serve runs the service until ctx ends. At the end the job stops first, then the Quorum.
func serve(ctx context.Context, cfg settings, report func(any)) (err error) {
	q, err := redlock.Open(cfg.Nodes, redlock.WithPrefix(prefix), redlock.WithTTL(ttl), redlock.WithIdentity(cfg.Replica))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close()) }()

	// The replicas elect a leader, which runs every tick. Without an election, each tick has a
	// lease, and the replica that gets the lease runs the tick.
	s, err := scheduler.New(q, scheduler.WithElection(cfg.Job))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Shutdown()) }()

	task := func(ctx context.Context) { // ctx ends when the lease is lost or the scheduler stops
		run, _ := scheduler.RunFromContext(ctx)
		report(event{At: time.Now(), Tick: run.Due, Attempt: run.Attempt, Token: run.FencingToken()})
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
		// Run a tick again if its run was cut short, for example by a crash. The default is not to.
		scheduler.WithDelivery(scheduler.AtLeastOnce),
		// If a tick is due while a run goes on, run it afterwards. The default is to skip it.
		scheduler.WithOverlap(scheduler.OverlapQueue))
	if err != nil {
		return err
	}
	s.Start()
	<-ctx.Done()
	return nil
}

// event is the report of a run that begins.
type event struct {
	At      time.Time
	Tick    time.Time
	Attempt int // above 1 if an earlier run of the tick was cut short
	Token   uint64
}

func main() {
	if replicas.IsReplica() { // started by a Group
		slog.SetLogLoggerLevel(slog.LevelError) // warnings about the kill would interrupt the output
		replicas.Main(serve)
	}
	duration := flag.Duration("duration", 20*time.Second, "how long to run")
	nodes := replicas.NodesFlag()
	flag.Parse()
	ctx, stop := replicas.Context()
	defer stop()
	replicas.Exit(show(ctx, nodes, *duration))
}

// story collects the runs that the replicas have reported. It belongs to one goroutine.
type story struct {
	runs   map[int64][]int   // the attempts of each tick, by Unix second
	runner *replicas.Process // the replica of the last run
	began  time.Time         // when the last run began
}

// show starts the replicas, follows and harms them, and returns when all of them have ended.
func show(ctx context.Context, nodes *replicas.Nodes, duration time.Duration) error {
	if err := nodes.Open(ctx, redlock.WithPrefix(prefix), redlock.WithTTL(ttl)); err != nil {
		return err
	}
	defer nodes.Close()
	s := &story{runs: make(map[int64][]int)}
	group := replicas.NewGroup(s.follow)
	// Real servers remember the ticks of an earlier run of this program, so each run of the program
	// uses another job name.
	its := settings{Nodes: nodes.URLs, Job: fmt.Sprintf("quickstart-%d-%d", time.Now().Unix(), os.Getpid())}
	start := func(name string) { its.Replica = name; group.Start(name, its) }
	await := func(text string, done func() bool) (is bool) {
		limited, cancel := context.WithTimeout(ctx, time.Minute) // allows for a busy machine
		defer cancel()
		if is = group.Watch(limited, done); !is && limited.Err() != nil && ctx.Err() == nil {
			group.Fail(errors.New(text + " within a minute"))
		}
		return is
	}
	fmt.Printf("Three replicas have one job, which is due every second. Each tick must run once, on one replica, also when\n"+
		"one is killed. Their leases are on %d nodes.\n", len(nodes.URLs))
	if nodes.Fleet != nil {
		fmt.Printf("To see it: go run ./cmd/tenure web --prefix %s --nodes %s\n", prefix, strings.Join(nodes.URLs, ","))
	}
	for _, name := range []string{"a", "b", "c"} {
		start(name)
	}
	if await("no replica runs the job", func() bool { return s.runner != nil }) {
		group.Pass(ctx, duration/3)
	}
	// On a busy machine a report may come when its run is already over.
	if await("no run was told of at once", func() bool { return time.Since(s.began) < work/2 }) {
		victim, killed := s.runner, time.Now()
		group.Kill(victim)
		replicas.Say("KILLS %s in the middle of the run (SIGKILL)", victim)
		if await("no replica took over", func() bool { return s.runner != victim }) {
			replicas.Say("%s has taken over, %v after the kill: not before the dead one's leases expired (TTL %v)",
				s.runner, s.began.Sub(killed).Round(time.Millisecond), ttl)
			start(victim.Name)
			group.Pass(ctx, duration/2)
			last := s.runner
			replicas.Say("%s is told to stop, as in a deployment; it hands over, and another one goes on at once", last)
			group.StopOne(last)
			await("no replica went on", func() bool { return s.runner != last })
		}
	}
	if err := errors.Join(group.Stop(), ctx.Err()); err != nil {
		return err
	}
	return s.conclude()
}

// follow records a run that has begun.
func (s *story) follow(p *replicas.Process, e event) {
	replicas.Say("%s runs tick %s  token %d, attempt %d, %.1f s late",
		p, e.Tick.Local().Format(time.TimeOnly), e.Token, e.Attempt, e.At.Sub(e.Tick).Seconds())
	s.runs[e.Tick.Unix()] = append(s.runs[e.Tick.Unix()], e.Attempt)
	s.runner, s.began = p, e.At
}

// conclude counts the ticks from the first that ran to the last. It returns an error if a tick ran
// twice or was lost. The nodes count the attempts of a tick, and grant another attempt only if the
// last run was cut short.
func (s *story) conclude() error {
	ticks := slices.Sorted(maps.Keys(s.runs))
	again, twice := 0, 0
	for _, attempts := range s.runs {
		again += len(attempts) - 1
		for i, attempt := range attempts[1:] {
			if attempt <= attempts[i] {
				twice++
			}
		}
	}
	lost := int(ticks[len(ticks)-1]-ticks[0]+1) - len(ticks)
	fmt.Printf("%d ticks ran, of which %d were cut short and run again; %d ran twice, %d were lost\n", len(ticks), again-twice, twice, lost)
	if twice+lost > 0 {
		return errors.New("a tick must run once")
	}
	fmt.Println("OK: no tick ran twice, none was lost")
	return nil
}
