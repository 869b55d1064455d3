package supervise

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Reason tells why a command was told to end before it ended by itself. It is empty if the command
// was not told to end.
type Reason string

// The reasons.
const (
	ReasonDeadline Reason = "deadline" // the lease was about to expire without an extension
	ReasonContext  Reason = "context"  // the context of Run ended: the lease was lost, or leadership was given up
	ReasonOrphaned Reason = "orphaned" // tenure died; only the watchdog sees this reason
	ReasonWatchdog Reason = "watchdog" // the watchdog died, and the command with it
)

// ErrUnsupported means that this system cannot run a command under a lease.
var ErrUnsupported = errors.New("supervise: a command under a lease takes Linux: nothing else is known to end all of its processes")

// ErrTooLate means that so little of the lease was left that the command was not started.
var ErrTooLate = errors.New("supervise: too little of the lease is left to start the command")

// Command describes a command that runs under a lease. The process that runs it must have no other
// children.
type Command struct {
	Path           string   // file of the program
	Args           []string // Args[0] is the program's name
	Env            []string // NAME=value
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Deadline returns the deadline of the lease as it is known at the time of the call, by this
	// process's clock. It is called every TTL/20, and at least once a second. It must not block.
	Deadline func() time.Time
	TTL      time.Duration
	// Grace is the time between SIGTERM and SIGKILL. The command gets SIGTERM when this much of the
	// lease is left, so Grace must be at most half of the TTL.
	Grace time.Duration
	// DeadlineFile is a file in which Run keeps the current deadline, see docs/steering.md. Run
	// removes the directory of the file at the end. Empty for no file.
	DeadlineFile string
	// Signals are forwarded to the command's process group.
	Signals <-chan syscall.Signal
	// Say writes a line for people. It is called by one goroutine at a time.
	Say func(line string)
}

// discard removes the directory of DeadlineFile.
func (c Command) discard() {
	if c.DeadlineFile != "" {
		_ = os.RemoveAll(filepath.Dir(c.DeadlineFile))
	}
}

// Aside is a stream for people whose reader may have stopped to read, as a terminal does after
// Ctrl-S. No work waits for that reader.
type Aside struct{ To io.Writer }

// Write waits for a moment at most. A text that has no room by then is written when there is room,
// unless the process has ended. Write never fails.
func (a Aside) Write(text []byte) (int, error) {
	text, written := bytes.Clone(text), make(chan struct{})
	go func() {
		defer close(written)
		_, _ = a.To.Write(text)
	}()
	select {
	case <-written:
	case <-time.After(100 * time.Millisecond): // less than any Margin
	}
	return len(text), nil
}

// Margin returns how long before the deadline the command is killed: a tenth of the TTL, but
// between 200 ms and 2 s. It is the allowance for a busy machine: with a load of 26 on two cores, a
// process that had left the command's group died 100 ms after the command.
func Margin(ttl time.Duration) time.Duration {
	return min(max(ttl/10, 200*time.Millisecond), 2*time.Second)
}

// Result is how a command ended.
type Result struct {
	Code   int    // as in a shell: 128+n for signal n; 126 or 127 for a program that does not start
	Reason Reason // why the command was told to end
	Killed bool   // tenure or the watchdog sent SIGKILL to the command or to a process that it left behind
	Left   int    // how many processes the command left behind; they were ended too
}
