package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/tenure-dev/tenure/cmd/tenure/internal/supervise"
	"github.com/tenure-dev/tenure/internal/environment"
	"github.com/tenure-dev/tenure/redlock"
)

// The environment variables of a child. Values from a tenure around this one are not passed on.
const (
	envKey          = "TENURE_KEY"
	envToken        = "TENURE_FENCING_TOKEN"
	envDeadlineFile = "TENURE_DEADLINE_FILE"
	envTick         = "TENURE_TICK"    // run with a tick: its time, in milliseconds since 1970
	envAttempt      = "TENURE_ATTEMPT" // run with a tick: how often the tick was granted
)

// child is the command of run and of elect, with its flags.
type child struct {
	ttl, grace        time.Duration
	identity, payload string

	p     *program
	relay *relay
	path  string
	args  []string
}

// maxGrace is the longest grace period unless --grace is given.
const maxGrace = 10 * time.Second

func (c *child) flags(f *pflag.FlagSet) {
	f.DurationVar(&c.ttl, "ttl", redlock.DefaultTTL, "how long the lease lasts without an extension: after a crash others wait for that")
	f.DurationVar(&c.grace, "grace", 0, "how long the command has between SIGTERM and SIGKILL (default a quarter of the TTL, 10s at most)")
	f.StringVar(&c.identity, "identity", "", "the holder's name, for people (default of host, process and a random part)")
	f.StringVar(&c.payload, "payload", "", "a text that others read with the lease, such as an address; no secret")
}

// take checks the flags and finds the program. From then on a broken pipe does not end this
// process.
func (c *child) take(args []string) error {
	outliveBrokenPipes()
	if c.ttl < redlock.MinTTL {
		return usage(fmt.Errorf("--ttl %v is below the minimum of %v", c.ttl, redlock.MinTTL))
	}
	c.p.connection.ttl = c.ttl
	switch {
	case c.grace == 0:
		c.grace = min(c.ttl/4, maxGrace)
	case c.grace > c.ttl/2:
		return usage(fmt.Errorf("--grace %v is above half of the TTL of %v: the command would be ended while the lease is being extended", c.grace, c.ttl))
	}
	// With a shorter grace period, SIGKILL would be due before SIGTERM.
	c.grace = max(c.grace, supervise.Margin(c.ttl))
	path, err := exec.LookPath(args[0])
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return exit(exitNoProgram, err)
	} else if err != nil {
		return exit(exitNotExecutable, err)
	}
	c.path, c.args = path, args
	return nil
}

// carryOut runs the command under the lease of a key and a fencing token, and forwards signals to
// it. Its error has an exit code if the command did not end by itself.
func (c *child) carryOut(ctx context.Context, key string, token uint64, deadline func() time.Time, more ...string) (supervise.Result, error) {
	signals, begun := c.relay.begin()
	if !begun {
		return supervise.Result{}, errNotBegun
	}
	defer c.relay.over()
	s := supervise.Command{
		Path: c.path, Args: c.args, Stdin: c.p.in, Stdout: c.p.out, Stderr: c.p.err,
		Deadline: deadline, TTL: c.ttl, Grace: c.grace, Signals: signals, Say: c.p.say,
	}
	s.Env = append(withoutOurs(c.p.environ), envKey+"="+key, envToken+"="+strconv.FormatUint(token, 10))
	s.Env = append(s.Env, more...)
	if dir, err := os.MkdirTemp("", "tenure-"); err != nil {
		c.p.say(fmt.Sprintf("the command gets no %s: %v", envDeadlineFile, err))
	} else {
		_ = os.Chmod(dir, 0o755) // a command that becomes another user may read it
		s.DeadlineFile = filepath.Join(dir, "deadline")
		s.Env = append(s.Env, envDeadlineFile+"="+s.DeadlineFile)
	}
	result, err := s.Run(ctx)
	switch {
	case is[*exec.Error](err):
		err = exit(result.Code, err)
	case errors.Is(err, supervise.ErrTooLate):
		err = exit(exitLost, err)
	case err != nil:
		err = exit(exitWatchdog, err)
	case result.Left > 0:
		c.p.say(fmt.Sprintf("the command has ended and left %d process(es) behind, which were ended too", result.Left))
	}
	return result, err
}

// errNotBegun means that a signal asked tenure to end before the command was started.
var errNotBegun = errors.New("the command was not started")

// withoutOurs returns the environment without the nodes, which are secret, and without the
// variables that carryOut and its callers set for the child.
func withoutOurs(environ []string) []string {
	drop := []string{envKey, envToken, envDeadlineFile, envTick, envAttempt, environment.Nodes, environment.NodesFile}
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(drop, name)
	})
}

// say writes a line for people to the error stream.
func (p *program) say(text string) { fmt.Fprintln(supervise.Aside{To: p.err}, "tenure: "+line(text)) }

// warn says what this system cannot guarantee for a child.
func (c *child) warn() {
	for _, text := range supervise.Missing() {
		c.p.say(text)
	}
	if info, err := os.Stat(c.path); err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 && os.Geteuid() != 0 {
		c.p.say(fmt.Sprintf("%s becomes another user: it may not be killed, and may outlive the lease", quoted(c.path)))
	}
}
