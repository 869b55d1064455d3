package replicas

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// stopPatience is longer than replicas give themselves.
const stopPatience = stopLimit + 2*time.Second

// Group is the replicas that this process has started. Their events are of type E. It belongs to
// one goroutine, which calls Watch or Stop, so that the replicas never wait for long.
type Group[E any] struct {
	follow   func(*Process, E)
	alive    map[*Process]bool
	news     chan func() // what the goroutine is to do next
	failures []error
}

// Process is one life of a replica.
type Process struct {
	Name   string
	cmd    *exec.Cmd
	stdin  io.Closer
	killed bool
}

// String is the replica's name and its process id.
func (p *Process) String() string {
	return fmt.Sprintf("replica %s (pid %d)", p.Name, p.cmd.Process.Pid)
}

// NewGroup returns a Group without replicas. Watch and Stop call follow for each event.
func NewGroup[E any](follow func(*Process, E)) *Group[E] {
	return &Group[E]{follow: follow, alive: make(map[*Process]bool), news: make(chan func())}
}

// Start starts this program as the replica of that name, with the settings that its Main reads. Its
// log goes to this program's standard error.
func (g *Group[E]) Start(name string, settings any) {
	self, err := os.Executable()
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), variable+"="+name)
	cmd.Stderr = os.Stderr
	stdin, inErr := cmd.StdinPipe()
	stdout, outErr := cmd.StdoutPipe()
	line, jsonErr := json.Marshal(settings)
	if err = errors.Join(err, inErr, outErr, jsonErr); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		g.Fail(fmt.Errorf("cannot start replica %s: %w", name, err))
		return
	}
	// A replica that has died already does not read it. Its end is reported like any other.
	_, _ = stdin.Write(append(line, '\n'))
	p := &Process{Name: name, cmd: cmd, stdin: stdin}
	g.alive[p] = true
	Say("%s started", p)
	go func() { // until the end of the process
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var event E
			err := json.Unmarshal(lines.Bytes(), &event)
			g.news <- func() {
				if err == nil {
					g.follow(p, event)
				} else {
					g.Fail(fmt.Errorf("unexpected output of %s: %w", p, err))
				}
			}
		}
		err := cmd.Wait()
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

// Watch follows the replicas until done returns true, which it reports. It returns false when ctx
// ends or something has failed.
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

// Pass lets that time pass, or ctx end.
func (g *Group[E]) Pass(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	g.Watch(ctx, func() bool { return false })
}

// Fail notes an error, which ends Watch.
func (g *Group[E]) Fail(err error) { g.failures = append(g.failures, err) }

// Failed reports whether something has.
func (g *Group[E]) Failed() bool { return len(g.failures) > 0 }

// Kill ends a process with SIGKILL.
func (g *Group[E]) Kill(p *Process) {
	p.killed = true
	if err := p.cmd.Process.Kill(); err != nil {
		g.Fail(fmt.Errorf("cannot kill %s: %w", p, err))
	}
}

// StopOne tells a replica to stop in order, and does not wait.
func (g *Group[E]) StopOne(p *Process) { _ = p.stdin.Close() }

// Stop stops all replicas in order, kills those that do not stop, and returns when every one is
// gone. Its error is all that has failed.
func (g *Group[E]) Stop() error {
	for p := range g.alive {
		g.StopOne(p)
	}
	patience := time.After(stopPatience)
	for len(g.alive) > 0 {
		select {
		case do := <-g.news:
			do()
		case <-patience:
			for p := range g.alive {
				g.Fail(fmt.Errorf("%s did not stop within %v", p, stopPatience))
				g.Kill(p)
			}
		}
	}
	return errors.Join(g.failures...)
}
