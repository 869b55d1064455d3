package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-dev/tenure/admin"
	"github.com/tenure-dev/tenure/internal/view"
	"github.com/tenure-dev/tenure/redlock"
)

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
