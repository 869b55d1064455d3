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

// The exit codes. They are complete and stable, and docs/steering.md lists them too. Codes of
// sysexits.h are used where one fits. `tenure run` passes on the exit code of its child, and few
// programs use these codes themselves.
const (
	exitOK     = 0
	exitFailed = 1 // for any other reason, which is on the error stream

	// Exit codes of doctor, by its worst finding.
	exitWarnings = 1
	exitFaults   = 2

	exitUsage    = 64 // EX_USAGE: an invalid command, flag, variable or name
	exitNotFound = 66 // EX_NOINPUT: no such job, run, pause, tick, leader or holder
	exitNoQuorum = 69 // EX_UNAVAILABLE: too few nodes answered, and nothing was done
	exitUnknown  = 70 // EX_SOFTWARE: it is not known whether the order was carried out
	exitWatchdog = 71 // EX_OSERR: the child's watchdog did not start, or it was killed and the child with it
	exitLost     = 74 // EX_IOERR: the lease was lost or about to expire, and the child was ended
	exitHeld     = 75 // EX_TEMPFAIL: another process holds the lease: try again (run with a tick exits with 0)
	exitRefused  = 76 // EX_PROTOCOL: no replica took the order, or a replica refused it
	exitDenied   = 77 // EX_NOPERM: the nodes refuse this user (password or right); the cluster may be well

	// Exit code of commands that show something.
	exitUnwritten = 74 // EX_IOERR: the standard output could not be written

	exitTimedOut      = 124 // as in timeout(1): --wait or --timeout passed
	exitNotExecutable = 126 // as in a shell: the child is not executable
	exitNoProgram     = 127 // as in a shell: the child does not exist
	exitSignal        = 128 // plus the number of the signal that ended the child or tenure
)

// exitError ends the program with a code. If err is nil, no error is printed, because the code says
// it all. The exit code of a child is passed on in this way.
type exitError struct {
	code int
	err  error
}

// exit returns an error that ends the program with a code, after err is printed if it is not nil.
func exit(code int, err error) error { return &exitError{code, err} }

// usage returns the error of an invalid command line.
func usage(err error) error { return exit(exitUsage, err) }

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// byError maps errors to exit codes. The first entry that matches counts. An exitError goes before
// all of them.
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

// exitCode returns the exit code of a command that returned err.
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

// is reports whether err, or an error that it wraps, has the type E.
func is[E error](err error) bool {
	_, found := errors.AsType[E](err)
	return found
}

// deniedError is the error of a command for which too few nodes accept this user.
type deniedError struct {
	text string
	err  error
}

func (e *deniedError) Error() string { return e.text }

func (e *deniedError) Unwrap() error { return e.err }

// denied returns a deniedError if err says that there is no quorum and the reason is this user:
// with the nodes that refuse the user there might be a quorum. Otherwise it returns err. An order
// whose result is not known keeps its error (admin.ErrUnknown).
func denied(q *redlock.Quorum, err error) error {
	if !errors.Is(err, redlock.ErrNoQuorum) || errors.Is(err, admin.ErrUnknown) {
		return err
	}
	for _, of := range []error{err, q.Healthy()} { // some errors do not name their nodes
		if few, is := errors.AsType[*redlock.QuorumError](of); is {
			if text := refusedBy(few); text != "" {
				return &deniedError{text, err}
			}
		}
	}
	return err
}

// refusedBy names the nodes that refuse this user. It returns "" if no node does, or if there would
// be no quorum even with these nodes.
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
