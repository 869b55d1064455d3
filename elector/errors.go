package elector

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/tenure-dev/tenure/redlock"
)

// Errors to compare with errors.Is.
var (
	// ErrNotLeader is returned by IsLeader on a replica that does not lead.
	ErrNotLeader error = &sentinel{"not_leader", "not the leader"}
	// ErrNoLeader means that no replica leads at the moment.
	ErrNoLeader error = &sentinel{"no_leader", "nobody leads"}
	// ErrRunning means that Run was called while it was running already.
	ErrRunning error = &sentinel{"running", "Run is running already"}
	// ErrNotRunning means that this replica does not take part in the election because Run is not
	// running.
	ErrNotRunning error = &sentinel{"not_running", "Run is not running"}
	// ErrResigned is the cause with which a term's context ends when the term is given up.
	ErrResigned error = &sentinel{"resigned", "resigned"}
	// ErrDrainTimeout means that lead had not returned when the drain timeout, counted from the end
	// of its term's context, was over. The lease is then left to run out, because the work under it
	// has not stopped. It is released if lead returns before that.
	ErrDrainTimeout error = &sentinel{"drain_timeout", "lead did not return within the drain timeout"}
)

// sentinel is the type of these errors. It has no ErrorType method, so the error of an acquisition
// that was given up is "canceled", whatever the cause of its context.
type sentinel struct{ word, text string }

func (s *sentinel) Error() string { return "elector: " + s.text }

// OptionError reports an option or an argument that cannot be used, and the bound that it breaks.
type OptionError struct {
	Option string // the option or argument as written in code, such as "WithDrainTimeout"
	Reason string // what is wrong with it and what would be right
	Err    error  // the cause, if another package refused the value
}

func (e *OptionError) Error() string { return "elector: " + e.Option + ": " + e.Reason }

// Unwrap returns the cause, if any.
func (e *OptionError) Unwrap() error { return e.Err }

// ErrorType returns the stable value "invalid".
func (e *OptionError) ErrorType() string { return "invalid" }

// refuse returns an *OptionError if wrong is true, and nil if not.
func refuse(wrong bool, option, format string, args ...any) error {
	if !wrong {
		return nil
	}
	return &OptionError{Option: option, Reason: fmt.Sprintf(format, args...)}
}

// checkContext refuses a nil context, which would panic later.
func checkContext(ctx context.Context) error {
	return refuse(ctx == nil, "ctx", "is nil: use context.Background() where there is no other")
}

func checkElection(q *redlock.Quorum, election string) error {
	return cmp.Or(refuse(q == nil, "q", "is nil: make one with redlock.Open"), refuse(election == "", "election", "is empty: name what is led"))
}

// ErrorType returns a short, stable word for an error, for the error.type attribute of traces and
// metrics. For an error of another package it returns the word of redlock.ErrorType.
func ErrorType(err error) string {
	if known, is := errors.AsType[*sentinel](err); is {
		return known.word
	}
	return redlock.ErrorType(err)
}
