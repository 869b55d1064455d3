package valkeytest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/tenure-dev/tenure/internal/child"
)

const (
	// readyWithin bounds how long a server may take until it answers. An empty
	// one takes about 20 ms; the rest is for loaded machines and large AOFs.
	readyWithin = 15 * time.Second

	// endWithin bounds how long SIGTERM may take.
	endWithin = 10 * time.Second

	// pollEvery is the interval between probes of a server that starts.
	pollEvery = 2 * time.Millisecond
)

var (
	errPortTaken  = errors.New("valkeytest: port taken")
	errNotRunning = errors.New("valkeytest: the server is not running: call Restart first")
)

// process is one life of a server.
type process struct {
	*child.Child
	logPath string
}

// launch starts a server, with more in its environment than this process has. It does not wait
// until the server answers.
func launch(binary, logPath string, args, environment []string) (*process, error) {
	log, err := os.Create(logPath)
	if err != nil {
		return nil, fmt.Errorf("valkeytest: no log file: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), environment...)
	c, err := child.Start(cmd)
	if err != nil {
		return nil, fmt.Errorf("valkeytest: cannot run %s: %w", binary, err)
	}
	return &process{Child: c, logPath: logPath}, nil
}

// awaitReady waits until the server of a node answers, and fails with errPortTaken if another
// process has the port.
func (p *process) awaitReady(n *Node) error {
	for deadline := time.After(readyWithin); ; {
		err := n.probe(p.Pid())
		if err == nil {
			return nil
		}
		select {
		case <-p.Exited():
			if bytes.Contains(p.log(), []byte("Address already in use")) {
				return errPortTaken
			}
			return fmt.Errorf("valkeytest: the server at %s ended at once (%s):\n%s", n.Addr(), cmp.Or(p.Err(), errors.New("exit status 0")), p.log())
		case <-deadline:
			return fmt.Errorf("valkeytest: the server at %s was not ready within %s: %w\n%s", n.Addr(), readyWithin, err, p.log())
		case <-time.After(pollEvery):
		}
	}
}

// kill ends the process, unless there is none or it has ended.
func (p *process) kill() error {
	if p == nil {
		return nil
	}
	return p.Kill()
}

// log returns what the process has printed.
func (p *process) log() []byte {
	log, err := os.ReadFile(p.logPath)
	if err != nil {
		return []byte(err.Error())
	}
	return log
}
