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

// Max is how many replicas a Group has at most: Name calls them a to z.
const Max = 26

// Name is the name of a replica by its number.
func Name(number int) string { return string(rune('a' + number)) }

// stopPatience is longer than replicas give themselves.
const stopPatience = stopLimit + 2*time.Second

// Group is the replicas that this process has started. Their events are of type E. It belongs to
// one goroutine, which calls Watch or Stop, so that the replicas never wait for long.
type Group[E any] struct {
	follow   func(*Process, E)
	alive    map[string]*Process
	reports  chan report[E]
	due      chan func() // what After was given, when its time has come
	stopped  chan struct{}
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

// report is an event of a process, or its end.
type report[E any] struct {
	from  *Process
	event E
	ended bool
	err   error // of the end; nil if the process stopped as it should
}

// NewGroup returns a Group without replicas. Watch and Stop call follow for each event.
func NewGroup[E any](follow func(*Process, E)) *Group[E] {
	return &Group[E]{
		follow:  follow,
		alive:   make(map[string]*Process),
		reports: make(chan report[E]),
		due:     make(chan func()),
		stopped: make(chan struct{}),
	}
}

// Start starts this program as the replica of that name, with the settings that its Main reads. Its
// log goes to this program's standard error. If it cannot be started, that is a failure, as in
// Fail.
func (g *Group[E]) Start(name string, settings any) {
	p, stdout, err := start(name, settings)
	if err != nil {
		g.Fail(fmt.Errorf("cannot start replica %s: %w", name, err))
		return
	}
	g.alive[name] = p
	Say("%s started", p)
	go g.read(p, stdout)
}

func start(name string, settings any) (*Process, io.Reader, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	line, err := json.Marshal(settings)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), variable+"="+name)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	// A replica that has died already does not read it. Its end is reported like any other.
	_, _ = stdin.Write(append(line, '\n'))
	return &Process{Name: name, cmd: cmd, stdin: stdin}, stdout, nil
}

// read reports what a process does, until it has ended.
func (g *Group[E]) read(p *Process, stdout io.Reader) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		r := report[E]{from: p}
		if err := json.Unmarshal(lines.Bytes(), &r.event); err != nil {
			Complain(fmt.Errorf("unexpected output of %s: %s", p, lines.Text()))
			continue
		}
		g.reports <- r
	}
	g.reports <- report[E]{from: p, ended: true, err: p.cmd.Wait()}
}

// After has Watch call do after that time.
func (g *Group[E]) After(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		select {
		case g.due <- do:
		case <-g.stopped:
		}
	})
}

// Watch follows the replicas until done returns true, which it reports. It returns false when ctx
// ends or something has failed.
func (g *Group[E]) Watch(ctx context.Context, done func() bool) bool {
	for ctx.Err() == nil && len(g.failures) == 0 {
		if done() {
			return true
		}
		select {
		case r := <-g.reports:
			g.take(r)
		case do := <-g.due:
			do()
		case <-ctx.Done():
		}
	}
	return false
}

func (g *Group[E]) take(r report[E]) {
	if !r.ended {
		g.follow(r.from, r.event)
		return
	}
	if g.alive[r.from.Name] == r.from {
		delete(g.alive, r.from.Name)
	}
	switch {
	case r.from.killed:
		Say("%s is gone: %v", r.from, r.err)
	case r.err != nil:
		g.Fail(fmt.Errorf("%s failed: %w", r.from, r.err))
	default:
		Say("%s exited", r.from)
	}
}

// Fail notes an error, which ends Watch.
func (g *Group[E]) Fail(err error) { g.failures = append(g.failures, err) }

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
	close(g.stopped)
	for _, p := range g.alive {
		g.StopOne(p)
	}
	patience := time.After(stopPatience)
	for len(g.alive) > 0 {
		select {
		case r := <-g.reports:
			g.take(r)
		case <-patience:
			for _, p := range g.alive {
				g.Fail(fmt.Errorf("%s did not stop within %v", p, stopPatience))
				g.Kill(p)
			}
		}
	}
	return errors.Join(g.failures...)
}
