package valkeytest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// readyWithin bounds how long a server may take until it answers. An empty
	// one takes about 20 ms; the rest is for loaded machines and large AOFs.
	readyWithin = 15 * time.Second

	// endWithin bounds how long SIGTERM may take.
	endWithin = 10 * time.Second

	// pollEvery is the interval between looks at what sends no event.
	pollEvery = 2 * time.Millisecond
)

var (
	errPortTaken  = errors.New("valkeytest: port taken")
	errNotRunning = errors.New("valkeytest: the server is not running: call Restart first")
)

// process is one life of a server.
type process struct {
	cmd     *exec.Cmd
	logPath string
	exited  chan struct{} // closed once the process is reaped
}

// launch starts a server, with more in its environment than this process has, and does not wait until it answers.
func launch(l *launcher, binary, logPath string, args, environment []string) (*process, error) {
	log, err := os.Create(logPath)
	if err != nil {
		return nil, fmt.Errorf("valkeytest: no log file: %w", err)
	}
	defer log.Close()
	p := &process{cmd: exec.Command(binary, args...), logPath: logPath, exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(os.Environ(), environment...)
	if err := l.start(p.cmd); err != nil {
		return nil, fmt.Errorf("valkeytest: cannot run %s: %w", binary, err)
	}
	go func() {
		defer close(p.exited)
		p.cmd.Wait() // how it ended is in cmd.ProcessState
	}()
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// awaitReady waits until the server answers at address, and fails with
// errPortTaken if another process has the port.
func (p *process) awaitReady(address string, cfg *config) error {
	deadline := time.NewTimer(readyWithin)
	defer deadline.Stop()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		err := probe(address, cfg, p.pid())
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			if bytes.Contains(p.log(), []byte("Address already in use")) {
				return errPortTaken
			}
			return fmt.Errorf("valkeytest: the server at %s ended at once (%s):\n%s", address, p.cmd.ProcessState, p.log())
		case <-deadline.C:
			return fmt.Errorf("valkeytest: the server at %s was not ready within %s: %w\n%s", address, readyWithin, err, p.log())
		case <-poll.C:
		}
	}
}

// signal fails with errNotRunning if the process has ended.
func (p *process) signal(s syscall.Signal) error {
	if !p.running() {
		return errNotRunning
	}
	if err := p.cmd.Process.Signal(s); err != nil {
		if errors.Is(err, os.ErrProcessDone) {
			return errNotRunning
		}
		return fmt.Errorf("valkeytest: cannot send %s to process %d: %w", s, p.pid(), err)
	}
	return nil
}

// stop sends SIGSTOP and waits until the process has stopped.
func (p *process) stop() error {
	if err := p.signal(signalStop); err != nil {
		return err
	}
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		if !p.running() {
			return errNotRunning
		}
		if isStopped, err := stopped(p.pid()); err != nil {
			return fmt.Errorf("valkeytest: cannot see whether process %d has stopped: %w", p.pid(), err)
		} else if isStopped {
			return nil
		}
		<-poll.C
	}
}

// kill ends the process, running, stopped or already ended, and waits for it.
func (p *process) kill() error {
	if p == nil {
		return nil
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("valkeytest: cannot kill process %d: %w", p.pid(), err)
	}
	<-p.exited
	return nil
}

// terminate sends SIGTERM and waits for the end. A process that does not end is
// killed, and that is an error.
func (p *process) terminate() error {
	for _, s := range []syscall.Signal{signalTerminate, signalContinue} {
		if err := p.signal(s); err != nil && err != errNotRunning {
			return err
		}
	}
	deadline := time.NewTimer(endWithin)
	defer deadline.Stop()
	select {
	case <-p.exited:
		return nil
	case <-deadline.C:
		return errors.Join(fmt.Errorf("valkeytest: process %d ignored SIGTERM for %s", p.pid(), endWithin), p.kill())
	}
}

// log returns what the process has printed.
func (p *process) log() []byte {
	log, err := os.ReadFile(p.logPath)
	if err != nil {
		return []byte(err.Error())
	}
	return log
}
