package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// process is one life of a replica.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	stop  func() // tells the replica to stop in order; may be called again

	// The supervisor's goroutine's.
	listens bool
	killed  bool
}

// report is what a process did: an event, or its end.
type report struct {
	from   *process
	event  event
	exited bool
	err    error // of the end; nil if the process stopped as it should
}

// startProcess starts this program as a replica. What it does is sent to reports, its end last; the caller receives
// until then. Its log goes to this program's standard error.
func startProcess(job assignment, reports chan<- report) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("cannot find this program's file to start a replica: %w", err)
	}
	line, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), replicaVariable+"="+job.Replica)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe to replica %s: %w", job.Replica, err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("cannot make a pipe from replica %s: %w", job.Replica, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start replica %s: %w", job.Replica, err)
	}
	p := &process{name: job.Replica, cmd: cmd, stdin: stdin}
	p.stop = sync.OnceFunc(func() { _ = p.stdin.Close() })
	// A replica that has died already does not read it; its end is reported like any other.
	_, _ = stdin.Write(append(line, '\n'))
	go p.follow(stdout, reports)
	return p, nil
}

// follow reports what the process does until it has ended.
func (p *process) follow(stdout io.Reader, reports chan<- report) {
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			complain(fmt.Errorf("unexpected output of %s: %s", p.who(), lines.Text()))
			continue
		}
		reports <- report{from: p, event: e}
	}
	reports <- report{from: p, exited: true, err: p.cmd.Wait()}
}

// kill ends the process with SIGKILL.
func (p *process) kill() error {
	p.killed = true
	return p.cmd.Process.Kill()
}

// who names the process in the output.
func (p *process) who() string { return fmt.Sprintf("replica %s (pid %d)", p.name, p.cmd.Process.Pid) }
