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
}

// report is what a process did: an event, or its end.
type report struct {
	from   *process
	event  event
	exited bool
	err    error // of the end; nil if the process stopped as it should
}

// startProcess starts this program as a replica. What it does is sent to reports, its end last; the caller receives
// until then.
func startProcess(job assignment, reports chan<- report, out *console) (*process, error) {
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
	stdin, errIn := cmd.StdinPipe()
	stdout, errOut := cmd.StdoutPipe()
	stderr, errErr := cmd.StderrPipe()
	for _, err := range []error{errIn, errOut, errErr} {
		if err != nil {
			return nil, fmt.Errorf("cannot make a pipe to replica %s: %w", job.Replica, err)
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start replica %s: %w", job.Replica, err)
	}
	p := &process{name: job.Replica, cmd: cmd, stdin: stdin}
	p.stop = sync.OnceFunc(func() { _ = p.stdin.Close() })
	// A replica that has died already does not read it; its end is reported like any other.
	_, _ = stdin.Write(append(line, '\n'))
	go p.follow(stdout, stderr, reports, out)
	return p, nil
}

// follow reports what the process does until it has ended.
func (p *process) follow(stdout, stderr io.Reader, reports chan<- report, out *console) {
	var complaints sync.WaitGroup
	complaints.Go(func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			out.complaint(p.who(), lines.Text())
		}
		_, _ = io.Copy(io.Discard, stderr) // what follows a line that is too long
	})
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			out.complaint(p.who(), "unexpected output: "+lines.Text())
			continue
		}
		reports <- report{from: p, event: e}
	}
	complaints.Wait()
	reports <- report{from: p, exited: true, err: p.cmd.Wait()}
}

// kill ends the process with SIGKILL.
func (p *process) kill() error { return p.cmd.Process.Kill() }

// who names the process in the output.
func (p *process) who() string { return fmt.Sprintf("replica %s (pid %d)", p.name, p.cmd.Process.Pid) }
