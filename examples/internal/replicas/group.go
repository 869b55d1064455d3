// Package replicas runs several replicas of an example's service, each in a process of its own. The
// program starts itself again for each replica. Group is the side of the process that the user
// started, and Main is the side of a replica.
//
// A replica gets its settings in its environment. Arguments are visible to all users of the
// machine, and the URLs of nodes contain passwords. A replica stops when its standard input ends,
// so it ends with its parent. It writes its events to standard output as lines of JSON.
package replicas

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/tenure-dev/tenure/internal/child"
)

// IsReplica reports whether this process is a replica that a Group has started.
func IsReplica() bool { return child.IsReplica() }

const (
	// stopLimit is how long a replica may take to stop. After that it exits, even if something
	// hangs.
	stopLimit = 8 * time.Second
	// waiting is how many events may wait for a Group to follow them.
	waiting = 1000
)

// Main runs a replica and exits. It calls serve, whose context ends when a signal comes or standard
// input ends.
func Main[S any](serve func(ctx context.Context, settings S, report func(event any)) error) {
	ctx, stop := Context()
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ExitAfter(ctx)
	var settings S
	if err := child.Settings(&settings); err != nil {
		Exit(err)
	}
	go func() { // runs until the process exits
		child.Work()
		cancel()
	}()
	var mu sync.Mutex
	Exit(serve(ctx, settings, func(event any) { // one write for each event, so that a kill leaves no part of a line
		line, err := json.Marshal(event)
		if err != nil {
			panic(err)
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = os.Stdout.Write(append(line, '\n')) // fails only if the reader is gone
	}))
}

// Context returns a context that ends with the first SIGINT or SIGTERM. The second signal ends the
// process at once.
func Context() (context.Context, func()) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// ExitAfter exits with code 1 if the process still runs stopLimit after the end of ctx.
func ExitAfter(ctx context.Context) {
	context.AfterFunc(ctx, func() { time.AfterFunc(stopLimit, func() { os.Exit(1) }) })
}

// Say prints a line with the time of day.
func Say(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}

// Exit ends the process with code 0. If there is an error, it prints the error and exits with 1.
func Exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Group is the set of replicas that this process has started. E is the type of their events. A
// Group belongs to one goroutine. That goroutine must keep calling Watch, Pass or Stop: a replica
// is blocked while too many events wait.
type Group[E any] struct {
	follow   func(*Process, E)
	alive    map[*Process]bool
	news     chan func() // functions for the goroutine to call
	failures []error
}

// Process is one life of a replica.
type Process struct {
	*child.Replica
	Name   string
	killed bool
}

// String returns the replica's name and process ID.
func (p *Process) String() string { return fmt.Sprintf("replica %s (pid %d)", p.Name, p.Pid()) }

// NewGroup returns a Group without replicas. Watch and Stop call follow for each event.
func NewGroup[E any](follow func(*Process, E)) *Group[E] {
	return &Group[E]{follow: follow, alive: make(map[*Process]bool), news: make(chan func(), waiting)}
}

// Start starts this program as the replica of the given name, whose Main reads the settings. The
// replica's log goes to this program's standard error.
func (g *Group[E]) Start(name string, settings any) {
	p := &Process{Name: name}
	var err error
	p.Replica, err = child.StartReplica(settings, func(line string) {
		g.news <- func() {
			var event E
			if err := json.Unmarshal([]byte(line), &event); err != nil {
				g.Fail(fmt.Errorf("unexpected output of %s: %w", p, err))
				return
			}
			g.follow(p, event)
		}
	})
	if err != nil {
		g.Fail(fmt.Errorf("cannot start replica %s: %w", name, err))
		return
	}
	g.alive[p] = true
	Say("%s started", p)
	go func() { // until the process ends
		err := p.Err()
		g.news <- func() { g.ended(p, err) }
	}()
}

func (g *Group[E]) ended(p *Process, err error) {
	delete(g.alive, p)
	switch {
	case p.killed:
		Say("%s is gone: %v", p, err)
	case err != nil:
		g.Fail(fmt.Errorf("%s failed: %w", p, err))
	default:
		Say("%s exited", p)
	}
}

// Watch follows the replicas until done returns true, and then returns true. It returns false when
// ctx ends or something has failed.
func (g *Group[E]) Watch(ctx context.Context, done func() bool) bool {
	for ctx.Err() == nil && len(g.failures) == 0 {
		if done() {
			return true
		}
		select {
		case do := <-g.news:
			do()
		case <-ctx.Done():
		}
	}
	return false
}

// Pass follows the replicas for the time d, or until ctx ends or something has failed.
func (g *Group[E]) Pass(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	g.Watch(ctx, func() bool { return false })
}

// Fail records an error, which ends Watch.
func (g *Group[E]) Fail(err error) { g.failures = append(g.failures, err) }

// Failed reports whether an error was recorded.
func (g *Group[E]) Failed() bool { return len(g.failures) > 0 }

// Kill ends a process with SIGKILL.
func (g *Group[E]) Kill(p *Process) {
	p.killed = true
	if err := p.Replica.Kill(); err != nil {
		g.Fail(fmt.Errorf("cannot kill %s: %w", p, err))
	}
}

// StopOne tells a replica to stop in order, and does not wait for it.
func (g *Group[E]) StopOne(p *Process) { go p.Replica.Stop() }

// Stop stops all replicas in order, and returns when all are gone. A replica may take stopLimit to
// stop. The error joins all that were recorded.
func (g *Group[E]) Stop() error {
	for p := range g.alive {
		g.StopOne(p)
	}
	for len(g.alive) > 0 {
		(<-g.news)()
	}
	return errors.Join(g.failures...)
}
