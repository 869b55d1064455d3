package supervise

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Reason tells why a command was told to end before it ended by itself. It is empty if it was not.
type Reason string

// The reasons.
const (
	ReasonDeadline Reason = "deadline" // the lease was about to end unextended
	ReasonContext  Reason = "context"  // the context of Run ended: the lease was lost, or the lead given up
	ReasonOrphaned Reason = "orphaned" // tenure died; only the watchdog sees this one
	ReasonWatchdog Reason = "watchdog" // the watchdog died, and with it the command
)

// ErrUnsupported means that this system cannot run a command under a lease.
var ErrUnsupported = errors.New("supervise: a command under a lease takes Linux: nothing else is known to end all of its processes")

// ErrTooLate means that so little of the lease was left that the command was not started.
var ErrTooLate = errors.New("supervise: too little of the lease is left to start the command")

// Command is a command that is to run under a lease. The process that runs it has no other
// children.
type Command struct {
	Path           string   // of the program
	Args           []string // Args[0] is its name
	Env            []string // NAME=value
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	// Deadline is the lease's, as known when it is called, for this process's clock. It is called
	// every TTL/20 and must not block.
	Deadline func() time.Time
	TTL      time.Duration
	// Grace is how long the command has between SIGTERM and SIGKILL. It gets SIGTERM when no more
	// than that is left of the lease, so it is below half of the TTL.
	Grace time.Duration
	// DeadlineFile is kept up to date with the deadline, see docs/steering.md. Run removes its
	// directory in the end. Empty for none.
	DeadlineFile string
	// Signals are forwarded to the command's process group.
	Signals <-chan syscall.Signal
	// Say tells people, one line a call. It is called by one goroutine at a time.
	Say func(line string)
}

// discard removes the directory of the DeadlineFile.
func (c Command) discard() {
	if c.DeadlineFile != "" {
		_ = os.RemoveAll(filepath.Dir(c.DeadlineFile))
	}
}

// Margin is how long before the deadline the command is killed: a tenth of the TTL, between 200 ms
// and two seconds, for a machine that is busy. With a load of 26 on two cores a process that had
// left the group died 100 ms after the one that was killed with it.
func Margin(ttl time.Duration) time.Duration {
	return min(max(ttl/10, 200*time.Millisecond), 2*time.Second)
}

// Result is how a command ended.
type Result struct {
	Code   int    // as a shell has it: 128+n for signal n, 126 and 127 for a program that does not start
	Reason Reason // why it was told to end
	Killed bool   // it got SIGKILL from tenure, or what it left behind did
	Left   int    // how many processes it left behind, which were ended
}
