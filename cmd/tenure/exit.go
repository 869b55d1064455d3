package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/elector"
	"github.com/tenure-dev/tenure/internal/environment"
	"github.com/tenure-dev/tenure/internal/view"
	"github.com/tenure-dev/tenure/redlock"
	"github.com/tenure-dev/tenure/web"
)

// The exit codes, all of them. They are stable, and docs/steering.md says the same. Those of
// sysexits.h are taken where one fits, so that a child of `tenure run`, whose own code is passed
// on, seldom has one of them.
const (
	exitOK     = 0
	exitFailed = 1 // for another reason; the error stream has it

	// Of doctor, by its worst finding.
	exitWarnings = 1
	exitFaults   = 2

	exitUsage    = 64 // EX_USAGE: a command, a flag, a variable or a name that cannot be
	exitNotFound = 66 // EX_NOINPUT: no such job, run, pause, tick, leader or holder
	exitNoQuorum = 69 // EX_UNAVAILABLE: too few nodes answered: nothing was done
	exitUnknown  = 70 // EX_SOFTWARE: an order may be done, or not
	exitWatchdog = 71 // EX_OSERR: the watchdog of a child did not start, or was killed, and the child with it
	exitLost     = 74 // EX_IOERR: the lease was lost, or about to be, and the child was ended
	exitHeld     = 75 // EX_TEMPFAIL: another one has the lease: try again; with a tick run ends with 0
	exitRefused  = 76 // EX_PROTOCOL: no replica took the order, or one refused it
	exitDenied   = 77 // EX_NOPERM: the nodes refuse this user: a wrong password, or a missing right; it says nothing of the cluster

	// Of commands that show something.
	exitUnwritten = 74 // EX_IOERR: the standard output could not be written

	exitTimedOut      = 124 // as of timeout(1): --wait or --timeout passed
	exitNotExecutable = 126 // as of a shell: the child is no program
	exitNoProgram     = 127 // as of a shell: there is no such child
	exitSignal        = 128 // and the number of the signal that ended the child, or tenure
)

// exitError ends the program with a code. With a nil err nothing is printed: the code says it all,
// as that of a child does.
type exitError struct {
	code int
	err  error
}

// exit has the program end with a code, after the text of the error, if there is one.
func exit(code int, err error) error { return &exitError{code, err} }

// usage is exit for a command line that cannot be.
func usage(err error) error { return exit(exitUsage, err) }

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// byError is which code stands for which error, the first that matches. A typed exit code goes
// before all of them.
var byError = []struct {
	err  error
	code int
}{
	{admin.ErrUnknown, exitUnknown},
	{admin.ErrNoJob, exitNotFound},
	{admin.ErrNobody, exitRefused},
	{admin.ErrRefused, exitRefused},
	{admin.ErrNotPaused, exitNotFound},
	{admin.ErrNotRunning, exitNotFound},
	{admin.ErrNoBackfill, exitNotFound},
	{elector.ErrNoLeader, exitNotFound},
	{redlock.ErrNotHeld, exitNotFound},
	{redlock.ErrLost, exitLost},
	{redlock.ErrHeld, exitHeld},
	{redlock.ErrSplit, exitHeld},
	{redlock.ErrNoQuorum, exitNoQuorum},
	{redlock.ErrTimeout, exitTimedOut},
	{context.DeadlineExceeded, exitTimedOut},
}

// exitCode is that of a command that returned err.
func exitCode(err error) int {
	told, isTold := errors.AsType[*exitError](err)
	switch {
	case err == nil:
		return exitOK
	case isTold:
		return told.code
	case is[*redlock.OptionError](err), is[*admin.OptionError](err), is[*elector.OptionError](err), is[*web.OptionError](err), is[*environment.Error](err):
		return exitUsage
	case is[*deniedError](err):
		return exitDenied
	}
	for _, b := range byError {
		if errors.Is(err, b.err) {
			return b.code
		}
	}
	return exitFailed
}

// is reports whether an error is of a type, or wraps one that is.
func is[E error](err error) bool {
	_, found := errors.AsType[E](err)
	return found
}

// deniedError is a command that the nodes refuse this user.
type deniedError struct {
	text string
	err  error
}

func (e *deniedError) Error() string { return e.text }

func (e *deniedError) Unwrap() error { return e.err }

// denied tells an error for want of a quorum that is this user's apart from one that is the
// cluster's: with the nodes that refuse him there might be one.
func denied(q *redlock.Quorum, err error) error {
	if !errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, admin.ErrUnknown) {
		return err
	}
	for _, of := range []error{err, q.Healthy()} { // not every error names its nodes
		if few, is := errors.AsType[*redlock.QuorumError](of); is {
			if text := refusedBy(few); text != "" {
				return &deniedError{text, err}
			}
		}
	}
	return err
}

// refusedBy names the nodes that refuse this user; empty if too few are left without them.
func refusedBy(few *redlock.QuorumError) string {
	var nodes, why []string
	for _, e := range few.Errs {
		if !view.Refused(e) {
			continue
		}
		nodes = append(nodes, e.Node)
		if text := e.Err.Error(); !slices.Contains(why, text) {
			why = append(why, text)
		}
	}
	if others := len(few.Errs) - len(nodes); len(nodes) == 0 || few.Nodes-others < few.Need {
		return ""
	}
	return fmt.Sprintf("the nodes refuse this user: %s: %s", strings.Join(nodes, ", "), strings.Join(why, "; "))
}
