// Package child runs processes that end with this one, however this one ends. It is for tests,
// tools and examples; internal/deptest keeps it out of the library.
package child

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// ErrEnded means that the process has ended already.
var ErrEnded = errors.New("child: the process has ended")

// pollEvery is the interval between checks whether a process has stopped.
const pollEvery = 2 * time.Millisecond

// Child is a process from its start to its end. It is safe for concurrent use.
type Child struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed once the process is reaped and all its output is read
	err    error         // of cmd.Wait; set before exited is closed
}

// Start starts a command. On Linux the kernel kills the process when this one ends. The process is
// in a process group of its own, so that a terminal's signals do not reach it: its parent ends it.
//
// Read the output through cmd.Stdout, see [Lines]. cmd.StdoutPipe does not work, because Start
// waits for the process from the beginning.
func Start(cmd *exec.Cmd) (*Child, error) {
	setAttributes(cmd)
	c := &Child{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux sends the parent-death signal when the thread that forked ends, not the process
		// (prctl(2), PR_SET_PDEATHSIG), and Go may end a thread at any time. So this goroutine
		// locks its thread, never unlocks it, and waits for the child: the thread ends with the
		// goroutine.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			c.err = cmd.Wait()
			close(c.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// Pid returns the process id.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Exited returns a channel that is closed when the process has ended and all its output was read.
func (c *Child) Exited() <-chan struct{} { return c.exited }

// Running reports whether the process has not ended.
func (c *Child) Running() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// Err waits for the end of the process and returns how it ended; nil is exit status 0.
func (c *Child) Err() error {
	<-c.exited
	return c.err
}

// Kill ends the process with SIGKILL, stopped or not, and waits for its end.
func (c *Child) Kill() error {
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("child: cannot kill process %d: %w", c.Pid(), err)
	}
	<-c.exited
	return nil
}

// Terminate sends SIGTERM, to a stopped process too, and waits for the end. A process that does not
// end within the patience is killed, and that is an error.
func (c *Child) Terminate(patience time.Duration) error {
	for _, s := range []syscall.Signal{syscall.SIGTERM, signalContinue} {
		if err := c.signal(s); err != nil && err != ErrEnded {
			return err
		}
	}
	select {
	case <-c.exited:
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("child: process %d ignored SIGTERM for %s", c.Pid(), patience), c.Kill())
	}
}

// Freeze sends SIGSTOP and waits until the process has stopped.
func (c *Child) Freeze() error {
	if err := c.signal(signalStop); err != nil {
		return err
	}
	for c.Running() {
		if stopped, err := isStopped(c.Pid()); err != nil {
			return fmt.Errorf("child: cannot see whether process %d has stopped: %w", c.Pid(), err)
		} else if stopped {
			return nil
		}
		time.Sleep(pollEvery)
	}
	return ErrEnded
}

// Thaw lets a frozen process go on.
func (c *Child) Thaw() error { return c.signal(signalContinue) }

// signal sends a signal. It fails with ErrEnded if the process has ended.
func (c *Child) signal(s syscall.Signal) error {
	if !c.Running() {
		return ErrEnded
	}
	if err := c.cmd.Process.Signal(s); errors.Is(err, os.ErrProcessDone) {
		return ErrEnded
	} else if err != nil {
		return fmt.Errorf("child: cannot send %s to process %d: %w", s, c.Pid(), err)
	}
	return nil
}

// Lines returns a writer that calls each with every complete line, one after the other. A last line
// without a line feed, such as of a process that was killed, is dropped.
func Lines(each func(line string)) io.Writer { return &lines{each: each} }

type lines struct {
	each func(string)
	rest []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		l.rest = rest
		l.each(string(line))
	}
}
