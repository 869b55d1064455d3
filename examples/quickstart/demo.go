package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/tenure-dev/tenure/examples/internal/replicas"
	"github.com/tenure-dev/tenure/redlock"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1   // a tick ran twice or was lost, or something did not work
	exitUsage       = 2   // the flags make no sense
	exitInterrupted = 130 // as a shell reports SIGINT
)

const (
	// work is how long a run takes: long enough to be killed in the middle of it.
	work = 300 * time.Millisecond
	// restartPause lets the output show the take-over before the killed replica comes back.
	restartPause = 500 * time.Millisecond
	// patience is by how much a busy machine may delay what the story waits for.
	patience = 30 * time.Second
)

// event is what a replica tells of a run that begins.
type event struct {
	At      time.Time
	Tick    time.Time
	Attempt int // above 1 if an earlier run of the tick was cut short
	Token   uint64
}

// story starts the replicas, follows what they do, and harms them. It belongs to one goroutine.
type story struct {
	cfg       *config
	settings  settings
	group     *replicas.Group[event]
	ledger    ledger
	runner    *replicas.Process // of the last run
	late      bool              // it was
	armed     bool              // the next run is to be killed
	victim    *replicas.Process
	killed    time.Time
	takenOver time.Time
}

// run is the process that the user started. It returns the exit code.
func run(args []string, nodesFromEnvironment string) int {
	cfg, err := parseFlags(args, nodesFromEnvironment)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err != nil {
		replicas.Complain(err)
		return exitUsage
	}
	ctx, stop := replicas.Context()
	defer stop()
	if cfg.web != "" {
		if err := demonstrate(ctx, cfg); err != nil {
			replicas.Complain(err)
			return exitFailed
		}
		return exitOK
	}
	err = show(ctx, cfg)
	switch {
	case ctx.Err() != nil:
		replicas.Complain(errors.New("interrupted"))
		return exitInterrupted
	case err != nil:
		replicas.Complain(err)
		return exitFailed
	}
	return exitOK
}

// show tells the whole story. It returns when every replica it started is gone.
func show(ctx context.Context, cfg *config) error {
	nodes, err := replicas.OpenNodes(cfg.nodes)
	if err != nil {
		return err
	}
	defer nodes.Close()
	if err := nodes.AwaitVotes(ctx, redlock.WithPrefix("quickstart"), redlock.WithTTL(cfg.ttl)); err != nil {
		return err
	}
	s := &story{cfg: cfg, ledger: make(ledger)}
	// Real servers remember the ticks of an earlier run of this program, so each run has a name of
	// its own.
	s.settings = settings{
		Nodes: nodes.URLs, TTL: cfg.ttl, Elect: cfg.mode == modeElector,
		Job: fmt.Sprintf("quickstart-%s-%d", time.Now().UTC().Format("20060102T150405"), os.Getpid()),
	}
	s.group = replicas.NewGroup(s.follow)
	where := "nodes inside this process"
	if nodes.Fleet == nil {
		where = "real servers"
	}
	fmt.Printf("%d replicas of a service have one job, which is due every second. Each tick must run once, on one replica.\n"+
		"A run that the kill of its replica cuts short must be run again, by another one.\n", cfg.replicas)
	if s.settings.Elect {
		fmt.Println("The replicas elect a leader, which runs every tick.")
	} else {
		fmt.Println("Each tick has a lease. The replica that gets it runs the tick.")
	}
	fmt.Printf("Their leases are on %s: %s\n\n", where, nodes)

	s.tell(ctx)
	if err := s.group.Stop(); err != nil || ctx.Err() != nil {
		return err
	}
	return s.conclude()
}

// tell is the story. It ends early when ctx ends or something fails.
func (s *story) tell(ctx context.Context) {
	for i := range s.cfg.replicas {
		s.start(replicas.Name(i))
	}
	if !s.await(ctx, patience, "no replica runs the job", func() bool { return s.runner != nil }) {
		return
	}
	end := time.Now().Add(s.cfg.duration)
	s.pass(ctx, s.cfg.duration/3)
	s.armed = true
	if !s.await(ctx, patience, "no run could be killed in its middle", func() bool { return s.victim != nil }) {
		return
	}
	if !s.await(ctx, s.cfg.ttl+patience, "no replica took over", func() bool { return !s.takenOver.IsZero() }) {
		return
	}
	replicas.Say("%s has taken over, %v after the kill: not before the dead replica's leases expired (TTL %v)",
		s.runner, s.takenOver.Sub(s.killed).Round(time.Millisecond), s.cfg.ttl)
	s.pass(ctx, restartPause)
	s.start(s.victim.Name)
	s.pass(ctx, time.Until(end))
	if !s.await(ctx, s.cfg.ttl+patience, "ticks are still late", func() bool { return !s.late }) {
		return
	}
	last := s.runner
	replicas.Say("%s is told to stop, as in a deployment; it hands over, and another one goes on at once", last)
	s.group.StopOne(last)
	if s.await(ctx, s.cfg.ttl+patience, "no replica went on", func() bool { return s.runner != last }) {
		replicas.Say("the others are told to stop, too")
	}
}

func (s *story) start(name string) {
	its := s.settings
	its.Replica = name
	s.group.Start(name, its)
}

// pass lets that time pass.
func (s *story) pass(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	s.group.Watch(ctx, func() bool { return false })
}

// await waits until done returns true, which it reports. It fails with the text if that takes
// longer.
func (s *story) await(ctx context.Context, d time.Duration, text string, done func() bool) bool {
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	if s.group.Watch(limited, done) {
		return true
	}
	if limited.Err() != nil && ctx.Err() == nil {
		s.group.Fail(fmt.Errorf("%s within %v", text, d))
	}
	return false
}

// follow takes note of a run that has begun.
func (s *story) follow(p *replicas.Process, e event) {
	late := e.At.Sub(e.Tick)
	s.late = late >= time.Second
	note := ""
	if s.late {
		note = fmt.Sprintf(", %.1f s late", late.Seconds())
	}
	if e.Attempt > 1 {
		note += fmt.Sprintf(", attempt %d", e.Attempt)
	}
	tick := e.Tick.Local().Format(time.TimeOnly)
	replicas.Say("%s runs tick %s  token %d%s", p, tick, e.Token, note)
	if !s.ledger.record(e.Tick, e.Attempt) {
		replicas.Say("TICK %s RUNS A SECOND TIME", tick)
	}
	s.runner = p
	if s.victim != nil && p != s.victim && s.takenOver.IsZero() {
		s.takenOver = e.At
	}
	// A report that comes late, on a busy machine, may be of a run that is over.
	if s.armed && time.Since(e.At) < work/2 {
		s.armed = false
		s.victim, s.killed = p, time.Now()
		s.group.Kill(p)
		role := "the leader"
		if !s.settings.Elect {
			role = "which holds the lease"
		}
		replicas.Say("KILLS %s, %s, in the middle of tick %s (SIGKILL)", p, role, tick)
	}
}

// conclude prints the summary and returns what was wrong.
func (s *story) conclude() error {
	text, err := s.ledger.check()
	fmt.Printf("\n%s", text)
	if err != nil {
		return err
	}
	fmt.Println("OK: no tick ran twice, none was lost")
	return nil
}
